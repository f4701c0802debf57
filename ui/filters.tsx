/* Filters of lists. They are in the address. */
import { filter, query } from "./router.ts"

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
  options
}: {
  readonly name: string
  readonly options: ReadonlyArray<string>
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
        <option key={option}>{option}</option>
      ))}
    </select>
  </label>
)

/** A time as a field of the browser has it, in the time of this machine. */
const localText = (at: string | undefined): string => {
  if (at === undefined || Number.isNaN(Date.parse(at))) return ""
  const ms = Date.parse(at) - new Date(at).getTimezoneOffset() * 60_000
  return new Date(ms).toISOString().slice(0, 19)
}

/** A filter that is a time. */
export const Time = ({ name }: { readonly name: string }) => (
  <label>
    {name}{" "}
    <input
      class="time"
      type="datetime-local"
      step={1}
      value={localText(query.value[name])}
      onChange={(event) => {
        const { value } = event.currentTarget
        filter({
          [name]: value === "" ? undefined : new Date(value).toISOString(),
          cursor: undefined
        })
      }}
    />
  </label>
)
