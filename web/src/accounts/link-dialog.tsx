import type { NewLink } from "../../../client/src/admin.ts";
import { CopyField, Dialog } from "../ui/components.tsx";
import { QrCode } from "../ui/qr-code.tsx";
import { format, formatDay, useWords } from "../words/index.ts";

interface LinkProps {
  readonly title: string;
  readonly lead: string;
  readonly link: NewLink;
  readonly onClose: () => void;
}

/** A link that is shown only once, as text and as a QR code. It cannot be closed by accident. */
export function LinkDialog({ title, lead, link, onClose }: LinkProps) {
  const { apps, administration: words } = useWords();
  return (
    <Dialog title={title}>
      <p>{lead}</p>
      <QrCode text={link.url} label={words.qr} />
      <CopyField label={words.link} text={link.url} />
      <p class="muted">{format(words.until, { day: formatDay(link.expiresAt) })}</p>
      <p class="buttons">
        <button type="button" class="button primary" onClick={onClose}>
          {apps.finished}
        </button>
      </p>
    </Dialog>
  );
}
