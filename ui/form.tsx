import type { ComponentChildren, InputHTMLAttributes } from "preact"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { isProblem } from "../src/client/client.ts"
import { dashed } from "./command-line.ts"
import { failureText } from "./data.ts"
import { type Field, formOf, patchOf, placeProblems, type Typed } from "./fields.ts"
import { shownTenant } from "./frame.tsx"
import { Command, Marked } from "./parts.tsx"
import { drafts } from "./router.ts"
import { TimeInput } from "./times.tsx"

const words = (name: string): string => dashed(name, " ")

/** What a form shows, and does with what is typed. */
interface FormProps {
  /** What the ids of its fields begin with, where another form of the page has fields of these names. */
  readonly ids?: string | undefined
  readonly fields: ReadonlyArray<Field>
  readonly typed: Typed
  readonly type: (path: string, text: string) => void
  /** What is wrong, by the path of the field. */
  readonly problems: Typed
  /** What is said beside a field, by its path: what somebody else has made of it meanwhile. */
  readonly notes?: Typed
  /** Values that a field of any text suggests. */
  readonly suggested?: Readonly<Record<string, ReadonlyArray<string>>>
}

interface ControlProps extends FormProps {
  readonly field: Field
  readonly path: string
}

const Control = ({
  field,
  ids = "",
  path,
  problems,
  suggested = {},
  type,
  typed
}: ControlProps) => {
  const { isSecret, kind, usual } = field
  const value = typed[path] ?? ""
  const listed = suggested[path]
  const common = {
    id: ids + path,
    name: path,
    "aria-describedby": `${ids + path}-says`,
    "aria-invalid": problems[path] !== undefined
  }
  const onInput = (event: { readonly currentTarget: { readonly value: string } }) =>
    type(path, event.currentTarget.value)
  switch (kind.is) {
    case "switch":
      return (
        <input
          {...common}
          type="checkbox"
          checked={value === "on"}
          onChange={(event) => type(path, event.currentTarget.checked ? "on" : "")}
        />
      )
    case "time":
      return <TimeInput {...common} at={value} change={(at) => type(path, at ?? "")} />
    case "choice":
      return (
        <select {...common} value={value} onChange={onInput}>
          <option value="">{usual === undefined ? "none" : `default: ${usual}`}</option>
          {kind.options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      )
    case "choices": {
      const chosen = new Set(value.split(", ").filter((one) => one !== ""))
      return (
        <div class="choices">
          {kind.options.map((option) => (
            <label key={option}>
              <input
                type="checkbox"
                checked={chosen.has(option)}
                onChange={(event) => {
                  if (event.currentTarget.checked) chosen.add(option)
                  else chosen.delete(option)
                  type(path, [...chosen].join(", "))
                }}
              />{" "}
              {option}
            </label>
          ))}
        </div>
      )
    }
    case "entries":
      return (
        <textarea
          {...common}
          rows={Math.max(2, value.split("\n").length)}
          placeholder="name=value, one a line"
          value={value}
          onInput={onInput}
          spellcheck={false}
        />
      )
    default: {
      const text = {
        ...common,
        ...{ value, onInput, autocomplete: "off", spellcheck: false },
        placeholder:
          usual ??
          (kind.is === "text" && kind.example !== undefined ? `such as ${kind.example}` : "")
      }
      if (isSecret === true) return <input {...text} type="password" />
      if (kind.is === "number") return <input {...text} inputMode="decimal" />
      return (
        <>
          {listed === undefined ? <input {...text} /> : <input {...text} list={`${path}-list`} />}
          {listed !== undefined && (
            <datalist id={`${path}-list`}>
              {listed.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          )}
        </>
      )
    }
  }
}

const Says = ({
  ids = "",
  notes = {},
  path,
  problems,
  text
}: FormProps & { path: string; text: string }) => (
  <div id={`${ids + path}-says`}>
    {problems[path] !== undefined && (
      <p class="bad" role="alert">
        {problems[path]}
      </p>
    )}
    {notes[path] !== undefined && <p class="noted">{notes[path]}</p>}
    {text !== "" && (
      <small>
        <Marked text={text} />
      </small>
    )}
  </div>
)

const Parts = (props: ControlProps) => {
  const { field, path, type, typed } = props
  const { kind, text } = field
  // It does not close under the cursor when what was typed is taken back.
  const isOpen = useRef(false)
  if (kind.is !== "parts") return null
  const off = `${path}.off`
  const isOff = typed[off] === "on"
  isOpen.current ||= kind.parts.some(({ name }) => typed[`${path}.${name}`] !== "")
  return (
    <details class="parts" open={isOpen.current}>
      <summary>{words(field.name)}</summary>
      <Says {...props} text={text} />
      {kind.mayBeOff === true && (
        <label>
          <input
            type="checkbox"
            checked={isOff}
            onChange={(event) => type(off, event.currentTarget.checked ? "on" : "")}
          />{" "}
          all off
        </label>
      )}
      {!isOff && (
        <div class="form">
          {kind.parts.map((part) => (
            <Line key={part.name} {...props} field={part} path={`${path}.${part.name}`} />
          ))}
        </div>
      )}
    </details>
  )
}

const Line = (props: ControlProps) => {
  const { field, ids = "", path } = props
  if (field.kind.is === "parts") return <Parts {...props} />
  return (
    <>
      {field.kind.is === "choices" ? (
        <span>{words(field.name)}</span>
      ) : (
        <label for={ids + path}>{words(field.name)}</label>
      )}
      <div>
        <Control {...props} />
        <Says {...props} text={field.text} />
      </div>
    </>
  )
}

/** The fields of a form, one below the other. */
export const Lines = (props: FormProps) => (
  <div class="form">
    {props.fields.map((field) => (
      <Line key={field.name} {...props} field={field} path={field.name} />
    ))}
  </div>
)

/** Gives the focus to what takes the place of a form. */
export const focusOn = (element: HTMLElement | null) => element?.focus()

/** What is wrong with a form as a whole. */
export const Problems = ({ texts }: { readonly texts: ReadonlyArray<ComponentChildren> }) =>
  texts.length === 0 ? null : (
    <div class="note" role="alert">
      <b aria-hidden="true">■</b>
      <div>
        {texts.map((text, at) => (
          <p key={at}>{text}</p>
        ))}
      </div>
    </div>
  )

/** What is wrong with what was typed: by field, and what is about none of them. */
export interface Wrong {
  readonly placed: Typed
  readonly other: ReadonlyArray<string>
}

const nothingWrong: Wrong = { placed: {}, other: [] }

/** Returns what a failure says of a form. */
export const wrongIn = (fields: ReadonlyArray<Field>, error: unknown): Wrong =>
  isProblem(error, "invalid-request") && error.errors.length > 0
    ? placeProblems(fields, error.errors)
    : { placed: {}, other: [failureText(error)] }

/**
 * What is typed into a form, and what came of sending it.
 *
 * @param before what stands in the fields until something is typed.
 */
export const useForm = (fields: ReadonlyArray<Field>, before: Typed = {}) => {
  const [own, setOwn] = useState<Typed>({})
  const [wrong, setWrong] = useState(nothingWrong)
  const [says, say] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  // A second submit comes before the button is drawn as disabled, which only says so: one that is
  // disabled loses the focus.
  const isSending = useRef(false)
  const typed = { ...before, ...own }
  const type = (path: string, text: string) => setOwn((others) => ({ ...others, [path]: text }))
  return {
    /** What stands in the fields now, and what was typed of it. */
    ...{ typed, own },
    ...{ wrong, says, isBusy },
    /** What `Lines` shows. */
    lines: { fields, typed, type, problems: wrong.placed },
    clear: () => setOwn({}),
    /** @param send returns what to say of it, or what is wrong where nothing failed. */
    submit: (send: () => Promise<string | Wrong | undefined>) => (event: Event) => {
      event.preventDefault()
      if (isSending.current) return
      isSending.current = true
      setBusy(true)
      void send()
        .catch((error: unknown) => wrongIn(fields, error))
        .then((outcome) => {
          setWrong(typeof outcome === "object" ? outcome : nothingWrong)
          say(typeof outcome === "object" ? undefined : outcome)
          setBusy(false)
          isSending.current = false
        })
    }
  }
}

/**
 * Asks before a page is left on which something is typed that is not saved. It knows that before the
 * page is shown: whoever is quick must not be asked about what has just been saved.
 */
export const useDraft = (isTyped: boolean): void => {
  const own = useRef({}).current
  useLayoutEffect(() => {
    if (isTyped) drafts.add(own)
    return () => drafts.delete(own)
  }, [isTyped])
}

/**
 * Returns why not to save what was typed: somebody else has set one of these fields meanwhile. Undefined
 * where nobody has.
 *
 * @param before what stood in the fields when they were typed into.
 * @param newest what stands in them by now.
 */
export const conflictsIn = (own: Typed, before: Typed, newest: Typed): Wrong | undefined => {
  const theirs = Object.keys(own).filter(
    (path) =>
      own[path] !== before[path] && newest[path] !== before[path] && newest[path] !== own[path]
  )
  if (theirs.length === 0) return undefined
  return {
    placed: Object.fromEntries(
      theirs.map((path) => [path, `was set to ${newest[path] || "nothing"} meanwhile`])
    ),
    other: ["Not saved: it was changed since you opened it. Look, and save again."]
  }
}

/** A form that changes what is set. */
export const ChangeForm = ({
  again,
  children,
  command,
  fields,
  held,
  read,
  save
}: {
  readonly again: () => void
  readonly children?: ComponentChildren
  readonly command: (patch: Record<string, unknown>) => { text: string; request: string }
  readonly fields: ReadonlyArray<Field>
  readonly held: object
  /** Reads what is held by now. */
  readonly read: () => Promise<{ readonly revision: number }>
  /** Returns the names of what was changed. It is saved over that revision only. */
  readonly save: (
    patch: Record<string, unknown>,
    options: { readonly ifMatch: number }
  ) => Promise<ReadonlyArray<string>>
}) => {
  const before = formOf(fields, { ...held })
  const { clear, isBusy, lines, own, says, submit, typed, wrong } = useForm(fields, before)
  const patch = patchOf(fields, before, typed)
  const isSame = Object.keys(patch).length === 0
  useDraft(!isSame)
  const send = async () => {
    if (isSame) return says
    const now = await read()
    const conflicts = conflictsIn(own, before, formOf(fields, { ...now }))
    if (conflicts !== undefined) {
      again()
      return conflicts
    }
    const changed = await save(patch, { ifMatch: now.revision })
    clear()
    again()
    return `Saved: ${changed.join(", ") || "nothing differs"}.`
  }
  return (
    <form class="card page" onSubmit={submit(send)}>
      {children}
      <Problems texts={wrong.other} />
      <Lines {...lines} />
      <div class="acts">
        {/* Disabled, it would lose the focus when all is saved. */}
        <button type="submit" class="main" aria-disabled={isSame || isBusy}>
          Save
        </button>
        {says !== undefined && <small role="status">{says}</small>}
      </div>
      <Command {...command(patch)} />
    </form>
  )
}

/** A line for a word of an address, such as an id, and what is said of it. */
export const WordLine = ({
  id,
  label = id,
  says,
  set,
  ...input
}: InputHTMLAttributes & {
  readonly id: string
  readonly label?: string
  readonly says?: string
  readonly set: (text: string) => void
  readonly value: string
}) => {
  const control = (
    <input {...input} id={id} onInput={(event) => set(event.currentTarget.value.trim())} />
  )
  return (
    <>
      <label for={id}>{label}</label>
      {says === undefined ? (
        control
      ) : (
        <div>
          {control}
          <small>{says}</small>
        </div>
      )}
    </>
  )
}

/**
 * The tenant of what a form makes: that of the page, which may change while the form is open, or else
 * what its `TenantLine` is told.
 */
export const useTenant = () => {
  const shown = shownTenant()
  const [told, tell] = useState("")
  return [shown === "*" ? told : shown, tell] as const
}

/** Asks for a tenant where the page shows all of them. */
export const TenantLine = ({
  is,
  set
}: {
  readonly is: string
  readonly set: (to: string) => void
}) =>
  shownTenant() === "*" ? (
    <WordLine id="tenant" required list="tenants" value={is} set={set} />
  ) : null
