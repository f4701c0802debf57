/* The parts that pages are made of. */
import { signal } from "@preact/signals"
import { type ComponentChildren, createContext } from "preact"
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { type Asked, problemText } from "./data.ts"
import { address, go } from "./router.ts"
import { session } from "./session.ts"

const kept = (name: string, usual: string): string => localStorage.getItem(name) ?? usual

/** Whether times are shown in UTC or as of this machine. */
export const isUtc = signal(kept("petrel-utc", "no") === "yes")

export const switchTimes = (): void => {
  isUtc.value = !isUtc.value
  localStorage.setItem("petrel-utc", isUtc.value ? "yes" : "no")
}

/** Light, dark, or as the system has it. */
export const theme = signal(kept("petrel-theme", "system"))

export const switchTheme = (): void => {
  const next = { system: "light", light: "dark", dark: "system" }[theme.value] ?? "system"
  theme.value = next
  localStorage.setItem("petrel-theme", next)
  showTheme()
}

export const showTheme = (): void => {
  document.documentElement.style.colorScheme = theme.value === "system" ? "" : theme.value
}

const units = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"]
] as const

/** Returns a duration in words: `3 min`, `12 ms`. */
export const lasting = (ms: number): string => {
  for (const [of, unit] of units) if (ms >= of) return `${Math.floor(ms / of)} ${unit}`
  return `${Math.round(ms)} ms`
}

// Made once: a list of 1,000 rows has as many times.
const localTimes = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })

/** Returns a time of the calendar. */
export const timeText = (at: string): string =>
  isUtc.value ? `${at.slice(0, 10)} ${at.slice(11, 23)} UTC` : localTimes.format(new Date(at))

export const count = (n: number | null | undefined): string => n?.toLocaleString("en") ?? "–"

/** A time as it is from now, with the exact one on hover. */
export const Ago = ({ at }: { readonly at: string | null | undefined }) => {
  if (at === null || at === undefined) return <span>–</span>
  const ms = Date.now() - Date.parse(at)
  return (
    <time dateTime={at} title={timeText(at)}>
      {ms >= 0 ? (ms < 1_000 ? "now" : `${lasting(ms)} ago`) : `in ${lasting(-ms)}`}
    </time>
  )
}

const stateLooks: Readonly<Record<string, readonly [sign: string, look: string]>> = {
  delivered: ["●", "good"],
  closed: ["●", "good"],
  ok: ["●", "good"],
  done: ["●", "good"],
  waiting: ["◐", "warn"],
  open: ["◐", "warn"],
  "half-open": ["◐", "warn"],
  paused: ["◐", "warn"],
  warn: ["▲", "warn"],
  warning: ["▲", "warn"],
  running: ["◐", "acc"],
  "dead-lettered": ["■", "bad"],
  "circuit open": ["■", "bad"],
  disabled: ["■", "bad"],
  suspended: ["■", "bad"],
  problem: ["■", "bad"],
  failed: ["■", "bad"],
  critical: ["■", "bad"]
}

/** A state, told by a sign and a word; the colour only helps. */
export const State = ({ is, says = is }: { readonly is: string; readonly says?: string }) => {
  const [sign, look] = stateLooks[is] ?? ["○", ""]
  return (
    <span class={`chip ${look}`}>
      <span aria-hidden="true">{sign}</span> {says}
    </span>
  )
}

/** Shows what was answered, or that it is awaited, or why not. */
export const Answered = <A,>({
  asked,
  children
}: {
  readonly asked: Asked<A>
  readonly children: (value: A) => ComponentChildren
}) => (
  <>
    {asked.problem !== undefined && (
      <div class="note" role="alert">
        <b aria-hidden="true">■</b>
        <div>
          {asked.problem}{" "}
          <button type="button" onClick={asked.again}>
            Try now
          </button>
        </div>
      </div>
    )}
    {asked.value !== undefined
      ? children(asked.value)
      : asked.problem === undefined && (
          <div class="card awaited" aria-busy="true">
            Loading…
          </div>
        )}
  </>
)

/** A button that copies a text. */
export const Copy = ({
  label = "copy",
  text
}: {
  readonly label?: string
  readonly text: string
}) => {
  const [copied, setCopied] = useState<string>()
  return (
    <button
      type="button"
      class="plain"
      onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(text))}
    >
      {copied === text ? "copied" : label}
    </button>
  )
}

/**
 * What a person would type for what the page does: a command, for which one needs the broker, or else
 * a request.
 */
export const Command = ({
  request,
  text
}: {
  readonly request?: string
  readonly text: string
}) => {
  const shown = session.value?.tenant === "*" ? text : request
  return shown === undefined ? null : (
    <div class="cmd">
      <code>{shown}</code>
      <Copy text={shown} />
    </div>
  )
}

/** A secret that is shown this once. */
export const Once = ({ secret }: { readonly secret: string }) => (
  <div class="once">
    <p>Keep it now: it is not shown again.</p>
    <div class="cmd bare">
      <code>{secret}</code>
      <Copy text={secret} />
    </div>
  </div>
)

/** Asks before something is done that others notice. */
const Confirm = ({
  asks,
  close,
  command,
  does,
  text,
  title
}: {
  readonly asks: string | undefined
  readonly close: () => void
  readonly command: string | undefined
  readonly does: (answer: string) => void
  readonly text: string
  readonly title: ComponentChildren
}) => {
  const dialog = useRef<HTMLDialogElement>(null)
  const [answer, setAnswer] = useState("")
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} onClose={close} aria-label="Are you sure?">
      <form
        method="dialog"
        class="confirm"
        onSubmit={() => {
          does(answer.trim())
        }}
      >
        <p>{text}</p>
        {asks !== undefined && (
          <label>
            {asks}
            <input value={answer} onInput={(event) => setAnswer(event.currentTarget.value)} />
          </label>
        )}
        {command !== undefined && <Command text={command} />}
        <div class="acts">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="main">
            {title}
          </button>
        </div>
      </form>
    </dialog>
  )
}

/** Tells the line below a row of buttons what a person would type for the one that is looked at. */
const Typing = createContext<(command: string | undefined) => void>(() => undefined)

/** A row of buttons, and below it what a person would type instead. */
export const Acts = ({
  children,
  usual
}: {
  readonly children: ComponentChildren
  readonly usual: string
}) => {
  const [command, setCommand] = useState<string>()
  return (
    <Typing.Provider value={setCommand}>
      <div class="acts">{children}</div>
      <div class="typed">
        <Command text={command ?? usual} />
      </div>
    </Typing.Provider>
  )
}

/**
 * A button that does something on the console, and says what came of it.
 *
 * @param asks what a person may say to it before it is done, such as a reason.
 * @param command what a person would type for the same.
 * @param confirm what a person must agree to before.
 * @param does returns what to say. It is given the answer to what is asked.
 */
export const Action = ({
  asks,
  children,
  command,
  confirm,
  does,
  main = false
}: {
  readonly asks?: string
  readonly children: ComponentChildren
  readonly command?: string
  readonly confirm?: string
  readonly does: (answer: string) => Promise<string>
  readonly main?: boolean
}) => {
  const [state, setState] = useState<{ busy?: true; says?: string; failed?: true }>({})
  const [isAsked, ask] = useState(false)
  const tell = useContext(Typing)
  const run = async (answer: string) => {
    setState({ busy: true })
    try {
      setState({ says: await does(answer) })
    } catch (error) {
      setState({ says: problemText(error), failed: true })
    }
  }
  return (
    <span class="action">
      <button
        type="button"
        class={main ? "main" : ""}
        disabled={state.busy === true}
        onClick={() => (confirm === undefined ? void run("") : ask(true))}
        onFocus={() => tell(command)}
        onMouseEnter={() => tell(command)}
      >
        {children}
      </button>
      {state.says !== undefined && (
        <small role="status" class={state.failed ? "bad" : ""}>
          {state.says}
        </small>
      )}
      {isAsked && confirm !== undefined && (
        <Confirm
          asks={asks}
          command={command}
          close={() => ask(false)}
          does={(answer) => void run(answer)}
          text={confirm}
          title={children}
        />
      )}
    </span>
  )
}

/** A table of which the arrow-like keys j and k choose a row, and Enter opens it. */
export const Rows = <A,>({
  empty,
  head,
  items,
  opens,
  row
}: {
  readonly empty: ComponentChildren
  readonly head: ComponentChildren
  readonly items: ReadonlyArray<A>
  readonly opens?: (item: A) => string
  readonly row: (item: A) => ComponentChildren
}) => {
  const [chosen, choose] = useState(-1)
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event)) return
      if (event.key === "j") choose((at) => Math.min(items.length - 1, at + 1))
      if (event.key === "k") choose((at) => Math.max(0, at - 1))
      const item = items[chosen]
      if (event.key === "Enter" && event.target === document.body && item !== undefined)
        if (opens !== undefined) go(opens(item))
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [items, chosen, opens])
  useEffect(() => {
    document.querySelector("tr[aria-selected=true]")?.scrollIntoView({ block: "nearest" })
  }, [chosen])
  if (items.length === 0) return <div class="card empty">{empty}</div>
  return (
    <section class="card flush scrolls">
      <table>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>
          {items.map((item, at) => (
            <tr key={at} aria-selected={at === chosen}>
              {row(item)}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** True for a key that belongs to a field. */
export const isTyping = ({ altKey, ctrlKey, metaKey, target }: KeyboardEvent): boolean =>
  altKey ||
  ctrlKey ||
  metaKey ||
  (target instanceof Element && target.closest("input, select, textarea") !== null)

export const deliveryPage = (tenant: string, delivery: string): string =>
  address(["deliveries", tenant, delivery])

export const EndpointLink = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => (
  <a href={address(["endpoints", tenant, id])}>
    {tenant}/{id}
  </a>
)

/** Links to the pages before and after. */
export const Pager = ({
  cursors: { next, previous },
  show
}: {
  readonly cursors: { readonly next?: string; readonly previous?: string }
  readonly show: (cursor: string | undefined) => void
}) => (
  <nav class="pager" aria-label="Pages of the list">
    <button type="button" disabled={previous === undefined} onClick={() => show(previous)}>
      Newer
    </button>
    <button type="button" disabled={next === undefined} onClick={() => show(next)}>
      Older
    </button>
  </nav>
)
