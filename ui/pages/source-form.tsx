import { useState } from "preact/hooks"
import type { Source } from "../../src/client/client.ts"
import { quoted, withoutSecrets } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { type Field, formOf, patchOf, type Typed, valuesOf } from "../fields.ts"
import { Lines, Problems } from "../form.tsx"
import { shownTenant } from "../frame.tsx"
import { sourceFields } from "../generated/forms.ts"
import { Command } from "../parts.tsx"
import { address, go } from "../router.ts"
import { petrel } from "../session.ts"
import { nothingWrong, wrongIn } from "../wrong.ts"

/** One secret is typed: a rotation adds others. Its commas are its own. */
const newFields = sourceFields.map(
  (field): Field => (field.name === "secrets" ? { ...field, kind: { is: "text" } } : field)
)

/** What may be changed of a source that is there. */
const changeFields = sourceFields.filter(({ name }) => name !== "provider" && name !== "secrets")

const bodyOf = (typed: Typed): Record<string, unknown> => {
  const { secrets, ...rest } = valuesOf(newFields, typed)
  return { ...rest, ...(secrets === undefined ? {} : { secrets: [secrets] }) }
}

const flagOf = (name: string, value: unknown): string => {
  if (name === "secrets") return "--secret-file FILE"
  const flag = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  if (value === null) return flag.replace("--", "--no-")
  // Secrets stay out of the history of a shell, and of who looks at the page.
  if (name === "apiKey") return `${flag}-file FILE`
  if (name === "verifyToken") return `${flag} TOKEN`
  if (Array.isArray(value)) return `${flag} ${quoted(value.join(","))}`
  return `${flag} ${quoted(typeof value === "object" ? JSON.stringify(value) : String(value))}`
}

const addCommand = (name: string, body: Readonly<Record<string, unknown>>): string =>
  [
    `petrel source add ${quoted(name)}`,
    ...Object.entries(body).map(([one, value]) => flagOf(one, value))
  ].join(" ")

/** Lets a provider's webhooks come in. */
export const NewSource = () => {
  const shown = shownTenant()
  const [tenant, setTenant] = useState(shown === "*" ? "" : shown)
  const [id, setId] = useState("")
  const [typed, setTyped] = useState<Typed>({})
  const [wrong, setWrong] = useState(nothingWrong)
  const [isBusy, setBusy] = useState(false)
  const body = bodyOf(typed)
  const name = id || String(typed.provider ?? "")
  const add = async () => {
    setBusy(true)
    try {
      const input = { ...body, tenant, id: name } as Parameters<typeof petrel.sources.add>[0]
      await petrel.sources.add(input)
      go(address(["sources", tenant, name]))
    } catch (error) {
      setWrong(wrongIn(newFields, error))
    }
    setBusy(false)
  }
  return (
    <form
      class="page"
      onSubmit={(event) => {
        event.preventDefault()
        void add()
      }}
    >
      <div class="title">
        <h1>New source</h1>
        <div class="acts">
          <button type="submit" class="main" disabled={isBusy}>
            Add it
          </button>
        </div>
      </div>
      <p class="lead">
        A provider's webhooks come in at a gateway (<code>petrel ingest</code>), are verified with
        its secret, and each becomes an event, whose type begins with the name of the source.
      </p>
      <Problems texts={wrong.other} />
      <section class="card">
        <div class="form">
          {shown === "*" && (
            <>
              <label for="tenant">tenant</label>
              <input
                id="tenant"
                required
                list="tenants"
                value={tenant}
                onInput={(event) => setTenant(event.currentTarget.value.trim())}
              />
            </>
          )}
          <label for="id">name</label>
          <div>
            <input
              id="id"
              value={id}
              placeholder={String(typed.provider ?? "") || "as the provider"}
              onInput={(event) => setId(event.currentTarget.value.trim())}
            />
            <small>1 to 64 letters, digits, - and _: the first word of its events' types.</small>
          </div>
        </div>
        <Lines
          fields={newFields}
          typed={typed}
          problems={wrong.placed}
          type={(path, text) => setTyped((before) => ({ ...before, [path]: text }))}
        />
      </section>
      <Command
        text={addCommand(`${tenant || "acme"}/${name || "stripe"}`, body)}
        request={curlCommand(
          `/v1/tenants/${tenant}/sources/${name}`,
          "POST",
          withoutSecrets(newFields, body)
        )}
      />
    </form>
  )
}

/** Changes what is set of a source. */
export const ChangeSource = ({
  again,
  of
}: {
  readonly again: () => void
  readonly of: Source
}) => {
  const before = formOf(changeFields, of as unknown as Record<string, unknown>)
  const [typed, setTyped] = useState<Typed>({})
  const [wrong, setWrong] = useState(nothingWrong)
  const [says, setSays] = useState<string>()
  const patch = patchOf(changeFields, before, { ...before, ...typed })
  const isChanged = Object.keys(patch).length > 0
  const curl = curlCommand(
    `/v1/tenants/${of.tenant}/sources/${of.id}`,
    "PATCH",
    withoutSecrets(changeFields, patch)
  )
  const flags = Object.entries(patch).map(([name, value]) => flagOf(name, value))
  return (
    <form
      class="card page"
      onSubmit={(event) => {
        event.preventDefault()
        void petrel.sources
          .patch({ ...patch, tenant: of.tenant, id: of.id })
          .then(() => {
            setTyped({})
            setWrong(nothingWrong)
            setSays(`Saved: ${Object.keys(patch).join(", ")}.`)
            again()
          })
          .catch((error: unknown) => {
            setSays(undefined)
            setWrong(wrongIn(changeFields, error))
          })
      }}
    >
      <h2>Settings</h2>
      <Problems texts={wrong.other} />
      <Lines
        fields={changeFields}
        typed={{ ...before, ...typed }}
        problems={wrong.placed}
        type={(path, text) => setTyped((others) => ({ ...others, [path]: text }))}
      />
      <div class="acts">
        <button type="submit" class="main" disabled={!isChanged}>
          Save
        </button>
        {says !== undefined && <small role="status">{says}</small>}
      </div>
      <Command
        text={[`petrel source set ${of.tenant}/${of.id}`, ...flags].join(" ")}
        request={curl}
      />
    </form>
  )
}
