/* Filters of lists. They are in the address. */
import { address, filter, go, path, query } from "./router.ts"
import { TimeInput } from "./times.tsx"

/** A filter that is typed. */
export const Filter = ({ name, hint }: { readonly name: string; readonly hint: string }) => (
  <label>
    {name}{" "}
    <input
      value={query.value[name] ?? ""}
      placeholder={hint}
      onChange={(event) =>
        filter({ [name]: event.currentTarget.value.trim() || undefined, cursor: undefined })
      }
    />
  </label>
)

/** A filter of which there are a few values. */
export const Choice = ({
  name,
  options,
  words = {}
}: {
  readonly name: string
  readonly options: ReadonlyArray<string>
  /** What options are called that are not called by their values. */
  readonly words?: Readonly<Record<string, string>>
}) => (
  <label>
    {name}{" "}
    <select
      value={query.value[name] ?? ""}
      onChange={(event) =>
        filter({ [name]: event.currentTarget.value || undefined, cursor: undefined })
      }
    >
      <option value="">any</option>
      {options.map((option) => (
        <option key={option} value={option}>
          {words[option] ?? option}
        </option>
      ))}
    </select>
  </label>
)

/** A filter that is a time. */
export const Time = ({ name, says = name }: { readonly name: string; readonly says?: string }) => (
  <label for={name}>
    {says}{" "}
    <TimeInput
      id={name}
      isLate
      at={query.value[name]}
      // Who goes back leaves the list, and does not take their times back one by one.
      change={(at) =>
        go(address(path.value, { ...query.value, [name]: at, cursor: undefined }), true)
      }
    />
  </label>
)

/** Times that people look back, ms. */
const backMs: Readonly<Record<string, number>> = {
  "1h": 3_600_000,
  "1d": 86_400_000,
  "7d": 604_800_000
}

/** True for how far back, false for a time. */
export const isBack = (since = ""): boolean => Object.hasOwn(backMs, since)

/** Returns the time that a filter means: `1h` ago, or the time itself. */
export const sinceTime = (since: string): string =>
  isBack(since) ? new Date(Date.now() - (backMs[since] ?? 0)).toISOString() : since

const between = "between"

/** A filter of time: how far back, or between two times. */
export const Since = () => {
  const { since, until } = query.value
  const isBetween = (since !== undefined && !isBack(since)) || until !== undefined
  return (
    <>
      <label>
        since{" "}
        <select
          value={isBetween ? between : (since ?? "")}
          onChange={({ currentTarget: { value } }) =>
            filter({
              since: value === between ? sinceTime(since ?? "1d") : value || undefined,
              until: undefined,
              cursor: undefined
            })
          }
        >
          <option value="">any</option>
          {[...Object.keys(backMs), between].map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      </label>
      {isBetween && (
        <>
          <Time name="since" says="from" />
          <Time name="until" />
        </>
      )}
    </>
  )
}
