import { Component, type ComponentChild, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { connectionProblem } from "../server/server.ts";
import { ErrorMessage } from "../ui/error-message.tsx";
import { useWords } from "../words/index.ts";

export type View = () => ComponentChild;

/** A view whose code is loaded when it is first shown. */
export function lazyView(load: () => Promise<View>): View {
  let Loaded: View | undefined;
  return function LazyView() {
    const words = useWords();
    const [status, setStatus] = useState<"loading" | "loaded" | "failed">("loading");
    useEffect(() => {
      const show = (view: View) => {
        Loaded = view;
        setStatus("loaded");
      };
      if (status === "loading" && Loaded === undefined) load().then(show, () => setStatus("failed"));
    }, [status]);
    if (Loaded !== undefined) return <Loaded />;
    if (status !== "failed") return <p class="muted">{words.loading}</p>;
    // With a connection, the cause is that the server is newer than this page.
    if (navigator.onLine && connectionProblem.value !== "unreachable") return <RenderFailure />;
    return <ErrorMessage text={words.failure.unreachable} onAction={() => setStatus("loading")} />;
  };
}

/** Keeps the other views usable when one fails to render. */
export class ErrorBoundary extends Component<{ children: ComponentChildren }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static override getDerivedStateFromError() {
    return { hasFailed: true };
  }

  render() {
    return this.state.hasFailed ? <RenderFailure /> : this.props.children;
  }
}

function RenderFailure() {
  const { failure, connection } = useWords();
  return <ErrorMessage text={failure.crashed} action={connection.reload} onAction={() => location.reload()} />;
}
