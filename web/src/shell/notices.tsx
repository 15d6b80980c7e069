import { useValue } from "../state/state.ts";
import { IconButton } from "../ui/components.tsx";
import { announcement, dismissNotice, notice, pauseNotice, resumeNotice, runNoticeAction } from "../ui/notices.ts";
import { useWords } from "../words/index.ts";

export function Notices() {
  const words = useWords();
  const current = useValue(notice);
  const announced = useValue(announcement);
  return (
    <>
      <div class="visually-hidden" role="status">
        {announced}
      </div>
      <div
        class="notices"
        role="status"
        onMouseEnter={pauseNotice}
        onMouseLeave={resumeNotice}
        onFocusIn={pauseNotice}
        onFocusOut={resumeNotice}
      >
        {current && (
          <div class="notice">
            <span>{current.text}</span>
            {current.action && (
              <button type="button" class="link" onClick={runNoticeAction}>
                {current.action.label}
              </button>
            )}
            <IconButton icon="close" label={words.close} onClick={dismissNotice} />
          </div>
        )}
      </div>
    </>
  );
}
