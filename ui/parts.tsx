/* The parts that pages are made of. */
import { signal } from "@preact/signals"
import { type ComponentChildren, createContext } from "preact"
import { useContext, useEffect, useRef, useState } from "preact/hooks"
import { type Asked, failureText } from "./data.ts"
import { address } from "./router.ts"
import { session } from "./session.ts"

/** Light, dark, or as the system has it. */
export const theme = signal(localStorage.getItem("petrel-theme") ?? "system")

export const switchTheme = (): void => {
  const next = { system: "light", light: "dark", dark: "system" }[theme.value] ?? "system"
  theme.value = next
  localStorage.setItem("petrel-theme", next)
  showTheme()
}

export const showTheme = (): void => {
  document.documentElement.style.colorScheme = theme.value === "system" ? "" : theme.value
}

export const count = (n: number | null | undefined): string => n?.toLocaleString("en") ?? "–"

const stateLooks: Readonly<Record<string, readonly [sign: string, look: string]>> = {
  delivered: ["●", "good"],
  enabled: ["●", "good"],
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
export const State = ({
  is,
  says = is
}: {
  readonly is: string
  readonly says?: ComponentChildren
}) => {
  const [sign, look] = stateLooks[is] ?? ["○", ""]
  return (
    <span class={`chip ${look}`}>
      <span aria-hidden="true">{sign}</span> {says}
    </span>
  )
}

/** A sentence of the console, with what it has in backticks as code. */
export const Marked = ({ text }: { readonly text: string }) => (
  <>{text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>
)

/** Codes of what is said of an installation in sentences that begin with a name, which stays as it is. */
const beginWithName = /^(alert-raised|source-refusing|broker-health-unknown)$/

/** What the status says: problems, or else notices. */
export const Conditions = ({
  are,
  warn = false
}: {
  readonly are: ReadonlyArray<{ readonly code: string; readonly text: string }>
  readonly warn?: boolean
}) => (
  <>
    {are.map(({ code, text }) => (
      <div key={text} class={warn ? "note warn" : "note"}>
        <b aria-hidden="true">{warn ? "▲" : "■"}</b>
        <div class={beginWithName.test(code) ? "named" : ""}>
          <Marked text={text} />
        </div>
      </div>
    ))}
  </>
)

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

/**
 * Asks before something is done that others notice. What a person agrees to is done as it was asked,
 * whatever the page has learnt since.
 */
const Confirm = (now: {
  readonly asks: string | undefined
  readonly close: () => void
  readonly command: string | undefined
  readonly does: (answer: string) => void
  readonly text: string
  readonly title: ComponentChildren
}) => {
  const { asks, close, command, does, text, title } = useRef(now).current
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
      setState({ says: failureText(error), failed: true })
    }
  }
  return (
    <span class="action">
      <button
        type="button"
        class={main ? "main" : ""}
        // A button that is disabled loses the focus.
        aria-disabled={state.busy}
        onClick={() => {
          if (state.busy === true) return
          if (confirm === undefined) void run("")
          else ask(true)
        }}
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

/** Moves the focus to the next or the previous row of the page's tables. */
export const moveInRows = (by: 1 | -1): void => {
  const rows = [...document.querySelectorAll<HTMLElement>("main .scrolls tbody tr")]
  const at = rows.findIndex((row) => row.contains(document.activeElement))
  const next = rows[at === -1 ? 0 : at + by]
  const target = next?.querySelector("a") ?? next
  target?.focus({ preventScroll: true })
  next?.scrollIntoView({ block: "nearest" })
}

/** True for a key that belongs to a field. */
export const isTyping = ({ altKey, ctrlKey, metaKey, target }: KeyboardEvent): boolean =>
  altKey ||
  ctrlKey ||
  metaKey ||
  (target instanceof Element &&
    target.closest("input:not([type=checkbox]), select, textarea") !== null)

export const deliveryPage = (tenant: string, delivery: string): string =>
  address(["deliveries", tenant, delivery])

/** How many attempts a delivery has had, which its page shows. */
export const AttemptsMade = ({
  of: { attempts, delivery, tenant }
}: {
  readonly of: { readonly attempts: number; readonly delivery: string; readonly tenant: string }
}) => (attempts === 0 ? <>0</> : <a href={deliveryPage(tenant, delivery)}>{count(attempts)}</a>)

export const EndpointLink = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => (
  <a href={address(["endpoints", tenant, id])}>
    {tenant}/{id}
  </a>
)
