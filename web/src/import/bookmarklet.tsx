import { publicUrl } from "../server/server.ts";
import { CopyButton } from "../ui/components.tsx";
import { showNotice } from "../ui/notices.ts";
import { useWords } from "../words/index.ts";

/** Opens the box with the URL of the page on which it runs; see `takeAddFragment`. */
const BOOKMARKLET = `javascript:location.href=${JSON.stringify(`${publicUrl}/#add=`)}+encodeURIComponent(location.href)`;

/** A bookmark that adds the podcast of any page. */
export function Bookmarklet() {
  const { bookmarklet: words } = useWords();
  return (
    <section class="stack" aria-labelledby="bookmarklet">
      <h2 id="bookmarklet">{words.title}</h2>
      <p class="muted">{words.lead}</p>
      <p class="buttons">
        <a
          class="button"
          href={BOOKMARKLET}
          onClick={(event) => {
            // It does nothing on this page.
            event.preventDefault();
            showNotice(words.lead);
          }}
        >
          {words.name}
        </a>
        <CopyButton text={BOOKMARKLET} label={words.copy} />
      </p>
    </section>
  );
}
