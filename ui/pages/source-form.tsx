import { useState } from "preact/hooks"
import type { Source } from "../../src/client/client.ts"
import { dashed, quoted, withoutSecrets } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { type Field, type Typed, valuesOf } from "../fields.ts"
import {
  ChangeForm,
  Lines,
  Problems,
  TenantLine,
  useDraft,
  useForm,
  useTenant,
  WordLine
} from "../form.tsx"
import { sourceFields } from "../generated/forms.ts"
import { Command } from "../parts.tsx"
import { address, drafts, go } from "../router.ts"
import { petrel } from "../session.ts"

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
  const flag = `--${dashed(name)}`
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
  const [tenant, setTenant] = useTenant()
  const [id, setId] = useState("")
  const { isBusy, lines, own, submit, typed, wrong } = useForm(newFields)
  const body = bodyOf(typed)
  useDraft(Object.values(own).join("") !== "")
  const name = id || String(typed.provider ?? "")
  const add = async () => {
    const input = { ...body, tenant, id: name } as Parameters<typeof petrel.sources.add>[0]
    await petrel.sources.add(input)
    drafts.clear()
    go(address(["sources", tenant, name]))
    return undefined
  }
  return (
    <form class="page" onSubmit={submit(add)}>
      <div class="title">
        <h1>New source</h1>
        <div class="acts">
          <button type="submit" class="main" aria-disabled={isBusy}>
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
          <TenantLine is={tenant} set={setTenant} />
          <WordLine
            id="id"
            label="name"
            value={id}
            set={setId}
            placeholder={String(typed.provider ?? "") || "as the provider"}
            says="1 to 64 letters, digits, - and _: the first word of its events' types."
          />
        </div>
        <Lines {...lines} />
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
  const { id, tenant } = of
  return (
    <ChangeForm
      again={again}
      fields={changeFields}
      held={of}
      read={() => petrel.sources.get({ tenant, id })}
      save={async (patch, options) => {
        await petrel.sources.patch({ ...patch, tenant, id }, options)
        return Object.keys(patch)
      }}
      command={(patch) => ({
        text: [
          `petrel source set ${tenant}/${id}`,
          ...Object.entries(patch).map(([name, value]) => flagOf(name, value))
        ].join(" "),
        request: curlCommand(
          `/v1/tenants/${tenant}/sources/${id}`,
          "PATCH",
          withoutSecrets(changeFields, patch)
        )
      })}
    >
      <h2>Settings</h2>
    </ChangeForm>
  )
}
