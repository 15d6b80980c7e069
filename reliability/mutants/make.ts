import {
  type Expression,
  isArrayLiteralExpression,
  isArrowFunction,
  isAwaitExpression,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isExpressionStatement,
  isExpressionWithTypeArguments,
  isForStatement,
  isIfStatement,
  isImportDeclaration,
  isInterfaceDeclaration,
  isNewExpression,
  isNoSubstitutionTemplateLiteral,
  isNumericLiteral,
  isPrefixUnaryExpression,
  isPropertyAssignment,
  isPropertyDeclaration,
  isRegularExpressionLiteral,
  isReturnStatement,
  isStringLiteral,
  isTemplateExpression,
  isThrowStatement,
  isTypeAliasDeclaration,
  isTypeNode,
  isTypeOfExpression,
  isWhileStatement,
  type Node,
  SyntaxKind,
} from "typescript/unstable/ast";
import { createVirtualFileSystem } from "typescript/unstable/fs";
import { API } from "typescript/unstable/sync";

/** A small fault that is put into a file: `there` becomes `instead`. */
export interface Mutant {
  readonly file: string;
  /** Where `there` begins, in characters. */
  readonly start: number;
  readonly line: number;
  readonly there: string;
  readonly instead: string;
}

export function mutate(text: string, { start, there, instead }: Mutant): string {
  return text.slice(0, start) + instead + text.slice(start + there.length);
}

/**
 * The mutants of each file, by its name. Left out is what no test could notice: types and imports, which are gone before
 * anything runs; what an error says to the log alone, and its name there; the text of `typeof`, whose comparison is
 * mutated already. A statement of SQL is changed by its parts: an empty one is noticed by anybody.
 */
export function makeMutants(texts: Readonly<Record<string, string>>): Mutant[] {
  const names = Object.keys(texts);
  const project = { files: names, compilerOptions: { noLib: true, noResolve: true, types: [] } };
  const places = Object.fromEntries(names.map((name) => [`/${name}`, texts[name] ?? ""]));
  const parser = new API({
    cwd: "/",
    fs: createVirtualFileSystem({ "/tsconfig.json": JSON.stringify(project), ...places }),
  });
  try {
    const [parsed] = parser.updateSnapshot({ openProjects: ["/tsconfig.json"] }).getProjects();
    return names.flatMap((name) => {
      const tree = parsed?.program.getSourceFile(`/${name}`);
      if (tree === undefined) throw new Error(`${name} cannot be parsed`);
      return mutantsOf(name, tree.text, tree);
    });
  } finally {
    parser.close();
  }
}

function mutantsOf(file: string, text: string, tree: Node): Mutant[] {
  const mutants: Mutant[] = [];
  const put = (start: number, there: string, instead: string) => {
    if (there !== instead) mutants.push({ file, start, line: text.slice(0, start).split("\n").length, there, instead });
  };
  const visit = (node: Node): void => {
    if (isNeverRun(node)) return;
    for (const [changed, instead] of replacements(node)) put(changed.getStart(), changed.getText(), instead);
    for (const [start, there, instead] of partsOfText(node)) put(node.getStart() + start, there, instead);
    node.forEachChild((child) => {
      if (!isForTheLog(child)) visit(child);
    });
  };
  visit(tree);
  return mutants;
}

function isNeverRun(node: Node): boolean {
  if (isExpressionWithTypeArguments(node)) return false;
  return isTypeNode(node) || isImportDeclaration(node) || isInterfaceDeclaration(node) || isTypeAliasDeclaration(node);
}

const SAID_TO_THE_LOG = /Error$|^StoreUnavailable$|^InDoubt$|^NotWritable$/;

function isForTheLog(node: Node): boolean {
  const { parent } = node;
  if (isPropertyDeclaration(parent)) return parent.name.getText() === "name";
  if (!isNewExpression(parent) || !SAID_TO_THE_LOG.test(parent.expression.getText())) return false;
  return parent.arguments?.[0] === node && isText(node);
}

const OTHER_OPERATOR = new Map<SyntaxKind, string>([
  [SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [SyntaxKind.LessThanToken, "<="],
  [SyntaxKind.LessThanEqualsToken, "<"],
  [SyntaxKind.GreaterThanToken, ">="],
  [SyntaxKind.GreaterThanEqualsToken, ">"],
  [SyntaxKind.AmpersandAmpersandToken, "||"],
  [SyntaxKind.BarBarToken, "&&"],
  [SyntaxKind.QuestionQuestionToken, "&&"],
  [SyntaxKind.PlusToken, "-"],
  [SyntaxKind.MinusToken, "+"],
  [SyntaxKind.AsteriskToken, "/"],
  [SyntaxKind.SlashToken, "*"],
  [SyntaxKind.PercentToken, "*"],
  [SyntaxKind.AmpersandToken, "|"],
  [SyntaxKind.BarToken, "&"],
  [SyntaxKind.PlusEqualsToken, "-="],
  [SyntaxKind.MinusEqualsToken, "+="],
  [SyntaxKind.QuestionQuestionEqualsToken, "="],
]);

/** What is put in the place of a node, or of one of its parts. */
function replacements(node: Node): (readonly [changed: Node, instead: string])[] {
  if (isIfStatement(node)) return both(node.expression);
  if (isConditionalExpression(node)) return both(node.condition);
  // An endless loop is found by waiting, and tells no more than one that is never entered.
  if (isWhileStatement(node)) return [[node.expression, "false"]];
  if (isForStatement(node)) return node.condition === undefined ? [] : [[node.condition, "false"]];
  if (isBinaryExpression(node)) return operatorOf(node);
  if (isPrefixUnaryExpression(node)) return isSign(node) ? [[node, node.operand.getText()]] : [];
  if (isReturnStatement(node)) return isWorthLosing(node.expression) ? [[node, "return;"]] : [];
  if (isArrowFunction(node)) return isWorthLosing(node.body) && !isBlock(node.body) ? [[node.body, "undefined"]] : [];
  if (isThrowStatement(node)) return [[node, ";"]];
  if (isExpressionStatement(node)) return isEffect(node.expression) ? [[node, ";"]] : [];
  if (isArrayLiteralExpression(node)) return node.elements.length > 0 ? [[node, "[]"]] : [];
  if (isNumericLiteral(node)) return [[node, String(Number(node.getText().replaceAll("_", "")) + 1)]];
  if (node.kind === SyntaxKind.TrueKeyword) return [[node, "false"]];
  if (node.kind === SyntaxKind.FalseKeyword) return [[node, "true"]];
  if (isText(node) && !isSql(node) && !isKeyOrKind(node)) return [[node, isEmptyText(node) ? '"other"' : '""']];
  return [];
}

function both(condition: Expression): [Node, string][] {
  return [
    [condition, "true"],
    [condition, "false"],
  ];
}

/** Turning a condition around as a whole tells no more than making it true and making it false. */
function operatorOf(node: Node): [Node, string][] {
  if (!isBinaryExpression(node)) return [];
  const other = OTHER_OPERATOR.get(node.operatorToken.kind);
  const { parent } = node;
  const isCondition =
    (isIfStatement(parent) && parent.expression === node) ||
    (isConditionalExpression(parent) && parent.condition === node);
  if (other === undefined || (isCondition && /^[!=]==$/.test(other))) return [];
  // `a ?? b || c` is no expression, so what is mixed is put in brackets.
  return [[node, `(${node.left.getText()} ${other} ${node.right.getText()})`]];
}

function isSign(node: Node): boolean {
  return (
    isPrefixUnaryExpression(node) &&
    (node.operator === SyntaxKind.ExclamationToken || node.operator === SyntaxKind.MinusToken)
  );
}

/** Nothing is as good as false, and a yes or no is turned around already. */
function isWorthLosing(value: Node | undefined): boolean {
  return value !== undefined && !/^(undefined|true|false)$/.test(value.getText());
}

function isEffect(node: Expression): boolean {
  const inner = isAwaitExpression(node) ? node.expression : node;
  return isCallExpression(inner) || (isBinaryExpression(inner) && /^[^=!<>]*=$/.test(inner.operatorToken.getText()));
}

function isText(node: Node): boolean {
  return isStringLiteral(node) || isNoSubstitutionTemplateLiteral(node) || isTemplateExpression(node);
}

function isEmptyText(node: Node): boolean {
  return node.getText().length === 2;
}

function isKeyOrKind(node: Node): boolean {
  const { parent } = node;
  if (isPropertyAssignment(parent)) return parent.name === node;
  if (isCallExpression(parent)) return parent.expression.kind === SyntaxKind.ImportKeyword;
  return isBinaryExpression(parent) && isTypeOfExpression(parent.left);
}

const SQL = /^.\s*(select|insert|update|delete|create|begin|commit|rollback|pragma|set local|show)\b(?!["'])/;

function isSql(node: Node): boolean {
  return isText(node) && SQL.test(node.getText());
}

type Part = readonly [start: number, there: string, instead: string];
type Rule = readonly [pattern: RegExp, instead: string];

const VALUE = String.raw`(?:\?\d*|\$\d+(?:::[\w[\]]+)?|'[^']*'|any\(\$\d\)|[\w.]+)`;

/** A condition stays beside `true`, so that its parameters are still asked for. */
const SQL_RULES: readonly Rule[] = [
  [
    new RegExp(
      String.raw`(?<=\b(?:where|and|or|on|when) \(?)[\w.]+ (?:=|<>|<=?|>=?|is distinct from) ${VALUE}(?! and \$)`,
      "g",
    ),
    "(true or $&)",
  ],
  [/ on conflict(?: \([^)]*\))? do nothing/g, ""],
  [/do update set [\w\s=.,]+/g, "do nothing"],
  [/ order by [\w.,\s]+?(?=\s+limit|\)|["`]|$)/g, ""],
  [/ for update\b/g, ""],
  [/(?<= limit )(?:\?|\$\d+)/g, "($& + 1)"],
  [/(?<= limit )(?:\?|\$\d+)/g, "($& - 1)"],
  [/ <= /g, " < "],
  [/ >= /g, " > "],
  [/ < /g, " <= "],
  [/ > /g, " >= "],
  [/ <> /g, " = "],
  [/(?<!between \S+) and /g, " or "],
  [/ or /g, " and "],
  [/ \+ /g, " - "],
  [/ - /g, " + "],
  [/\bmax\(/g, "min("],
  [/\bgreatest\(/g, "least("],
  [/\bleast\(/g, "greatest("],
  [/\bunion\b(?! all)/g, "union all"],
  [/\bunique index\b/g, "index"],
  [/,\s*unique \([^)]*\)/g, ""],
  [/(?<=begin) (?:immediate|exclusive)\b/g, ""],
  [/(?<=synchronous = )full/g, "normal"],
  [/(?<=journal_mode = )wal/g, "delete"],
  [/ = off\b/g, " = on"],
  [/ = on\b/g, " = off"],
  [/(?<=(?: = |, |\())\d+\b/g, "($&+1)"],
];

const REGEX_RULES: readonly Rule[] = [
  [/(?<=^\/|\(|\|)\^/g, ""],
  [/(?<!\\)\$(?=\/[a-z]*$|\||\))/g, ""],
  [/(?<=\/)[dgimsuvy](?=[dgimsuvy]*$)/g, ""],
  [/\[\^/g, "["],
  [/\[(?!\^)/g, "[^"],
  [/(?<!\\)\+/g, ""],
  [/\\d/g, "\\D"],
];

/** Mutants of what a text or a pattern says. */
function partsOfText(node: Node): Part[] {
  if (isSql(node)) return apply(SQL_RULES, node.getText());
  if (isRegularExpressionLiteral(node)) return apply(REGEX_RULES, node.getText());
  return [];
}

function apply(rules: readonly Rule[], text: string): Part[] {
  return rules.flatMap(([pattern, instead]) =>
    [...text.matchAll(pattern)].map((match): Part => {
      const there = match[0];
      return [match.index, there, instead.replace("$&", () => there)];
    }),
  );
}
