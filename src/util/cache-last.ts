/** The function with its last result, if most calls repeat the argument of the one before. */
export function cacheLast<Argument, Result>(compute: (argument: Argument) => Result): (argument: Argument) => Result {
  let last: { readonly argument: Argument; readonly result: Result } | undefined;
  return (argument) => {
    if (last === undefined || last.argument !== argument) last = { argument, result: compute(argument) };
    return last.result;
  };
}
