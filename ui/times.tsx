/* Times as pages show and take them. */
import { signal } from "@preact/signals"

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
  return new Date(ms - offMs).toISOString().slice(0, 19)
}

/**
 * A field for a time, in UTC or the time of this machine as times are shown.
 *
 * @param at the time, as RFC 3339 has it.
 */
export const TimeInput = ({
  at,
  change,
  ...others
}: {
  readonly at: string | undefined
  readonly change: (at: string | undefined) => void
  readonly id?: string
  readonly name?: string
  readonly "aria-describedby"?: string
  readonly "aria-invalid"?: boolean
}) => (
  <input
    {...others}
    class="time"
    type="datetime-local"
    step={1}
    value={fieldText(at)}
    onChange={({ currentTarget: { value } }) =>
      change(value === "" ? undefined : new Date(isUtc.value ? `${value}Z` : value).toISOString())
    }
  />
)
