/* Times as pages show and take them. */
import { signal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"

/** Whether times are shown and typed in UTC or as of this machine. */
export const isUtc = signal(localStorage.getItem("petrel-utc") === "yes")

export const switchTimes = (): void => {
  isUtc.value = !isUtc.value
  localStorage.setItem("petrel-utc", isUtc.value ? "yes" : "no")
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

/** Returns a duration in two units where one says too little: `2 h 30 min`. */
export const lastingExactly = (ms: number): string => {
  const at = units.findIndex(([of]) => ms >= of)
  const [of, unit] = units[at] ?? [1, ""]
  const [next, smaller] = units[at + 1] ?? [1, ""]
  if (at === -1) return lasting(ms)
  const whole = Math.floor(ms / of)
  const rest = Math.floor((ms - whole * of) / next)
  return smaller === "" || rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${smaller}`
}

// Made once: a list of 1,000 rows has as many times.
const localTimes = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" })

/** Returns a time of the calendar. */
export const timeText = (at: string): string =>
  isUtc.value ? `${at.slice(0, 10)} ${at.slice(11, 23)} UTC` : localTimes.format(new Date(at))

const clockTimes = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" })

/** Returns the time of a day. */
export const clockText = (at: string): string =>
  isUtc.value ? at.slice(11, 19) : clockTimes.format(new Date(at))

/** How often relative times are made anew, ms. */
const tickMs = 5_000
const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, tickMs)

/** A time as it is from now, with the exact one on hover. */
export const Ago = ({ at }: { readonly at: string | null | undefined }) => {
  if (at === null || at === undefined) return <span>–</span>
  const ms = Math.max(now.value, Date.now()) - Date.parse(at)
  return (
    <time dateTime={at} title={timeText(at)}>
      {ms >= 0 ? (ms < 1_000 ? "now" : `${lasting(ms)} ago`) : `in ${lasting(-ms)}`}
    </time>
  )
}

/** A time as a field of the browser has it. */
const fieldText = (at: string | undefined): string => {
  const ms = at === undefined ? Number.NaN : Date.parse(at)
  if (Number.isNaN(ms)) return ""
  const offMs = isUtc.value ? 0 : new Date(ms).getTimezoneOffset() * 60_000
  const local = new Date(ms - offMs)
  return Number.isNaN(local.getTime()) ? "" : local.toISOString().slice(0, 19)
}

/**
 * A field for a time, in UTC or the time of this machine as times are shown.
 *
 * @param at the time, as RFC 3339 has it.
 * @param isLate true: a time is taken when it is left or confirmed with Enter, and not each time that
 *   becomes one while it is typed.
 */
export const TimeInput = ({
  at,
  change,
  isLate = false,
  ...others
}: {
  readonly at: string | undefined
  readonly isLate?: boolean
  readonly change: (at: string | undefined) => void
  readonly id?: string
  readonly name?: string
  readonly "aria-describedby"?: string
  readonly "aria-invalid"?: boolean
}) => {
  const input = useRef<HTMLInputElement>(null)
  const text = fieldText(at)
  // Not as its `value`, which would be set again, over what is typed, whenever the page is drawn anew.
  useEffect(() => {
    if (input.current !== null && input.current.value !== text) input.current.value = text
  }, [text])
  const take = ({ currentTarget: { validity, value } }: { currentTarget: HTMLInputElement }) => {
    // Years have four digits, but 0002 is only on the way to 2026.
    if (isLate ? !validity.valid : validity.rangeUnderflow || validity.rangeOverflow) return
    if (value === text) return
    change(value === "" ? undefined : new Date(isUtc.value ? `${value}Z` : value).toISOString())
  }
  return (
    <input
      {...others}
      ref={input}
      class="time"
      type="datetime-local"
      step={1}
      min="1970-01-01T00:00:00"
      max="9999-12-30T23:59:59"
      onChange={isLate ? undefined : take}
      onBlur={isLate ? take : undefined}
      onKeyDown={(event) => {
        if (isLate && event.key === "Enter") take(event)
      }}
    />
  )
}
