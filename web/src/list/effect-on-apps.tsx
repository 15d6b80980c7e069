import { useWords } from "../words/index.ts";

/** What a new feed URL does to podcast apps; shown before it is saved. */
export function EffectOnApps() {
  const { moves } = useWords();
  return (
    <div class="effect muted">
      <p>{moves.inApps}</p>
      <ul>
        <li>{moves.nothing}</li>
        <li>{moves.replaced}</li>
      </ul>
    </div>
  );
}
