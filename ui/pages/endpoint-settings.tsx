import type { ComponentChildren } from "preact"
import { useMemo, useState } from "preact/hooks"
import {
  type ChangedEndpoint,
  type EndpointChange,
  type EndpointDetail,
  isProblem
} from "../../src/client/client.ts"
import { endpointCommand, withoutSecrets } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import {
  type Field,
  formOf,
  maskProblems,
  patchOf,
  placeProblems,
  type Typed,
  valuesOf
} from "../fields.ts"
import {
  focusOn,
  Lines,
  Problems,
  TenantLine,
  useDraft,
  useForm,
  useTenant,
  WordLine
} from "../form.tsx"
import { endpointFields } from "../generated/forms.ts"
import { Answered, Command, Once } from "../parts.tsx"
import { address, go } from "../router.ts"
import { petrel } from "../session.ts"
import { Ago } from "../times.tsx"
import { valueText } from "./endpoint-history.tsx"

/** What most endpoints set; the rest is folded. */
const usualNames = new Set(["url", "types", "description", "sign", "retry", "maxInFlight", "rate"])
const isUsual = ({ name }: Field): boolean => usualNames.has(name)

/** The names of the presets, which are those of all tenants: a new endpoint may have no tenant yet. */
const usePresets = (tenant: string): ReadonlyArray<string> => {
  const asked = useAsked("preset names", (options) =>
    petrel.settings.presets({ tenant: tenant === "*" ? "any" : tenant }, options)
  )
  return asked.value?.presets.map(({ name }) => name) ?? []
}

interface SettingsProps {
  readonly tenant: string
  readonly before?: ComponentChildren
  readonly form: ReturnType<typeof useForm>
  readonly notes?: Typed
}

const Settings = ({ before, form, notes = {}, tenant }: SettingsProps) => {
  const lines = { ...form.lines, notes, suggested: { retry: usePresets(tenant) } }
  const rest = endpointFields.filter((field) => !isUsual(field))
  // A problem must not be hidden.
  const isRestWrong = Object.keys(lines.problems).some((path) =>
    rest.some(({ name }) => path === name || path.startsWith(`${name}.`))
  )
  return (
    <>
      <Problems texts={form.wrong.other} />
      <section class="card">
        {before}
        <Lines {...lines} fields={endpointFields.filter(isUsual)} />
        <details class="more" open={isRestWrong}>
          <summary>More settings</summary>
          <Lines {...lines} fields={rest} />
        </details>
      </section>
    </>
  )
}

/** What came of it: a secret is shown this once. */
const Made = ({ is, says }: { readonly is: ChangedEndpoint; readonly says: string }) => (
  <>
    <h1>
      {is.tenant}/{is.id}
    </h1>
    <section class="card" role="status" tabIndex={-1} ref={focusOn}>
      <p>{says}</p>
      {is.secret !== undefined && <Once secret={is.secret} />}
      {is.cautions.map((text) => (
        <p key={text}>▲ {text}</p>
      ))}
      <p>
        <a class="btn" href={address(["endpoints", is.tenant, is.id])}>
          To the endpoint
        </a>
      </p>
    </section>
  </>
)

/** Adds an endpoint. */
export const NewEndpoint = () => {
  const [tenant, setTenant] = useTenant()
  const [id, setId] = useState("")
  const form = useForm(endpointFields)
  const [made, setMade] = useState<ChangedEndpoint>()
  const body = valuesOf(endpointFields, form.typed)
  const bodyText = JSON.stringify(body)
  // The same request, sent again after an answer that was lost, adds nothing twice.
  const idempotencyKey = useMemo(() => crypto.randomUUID(), [tenant, bodyText])
  useDraft(bodyText + id !== "{}" && made === undefined)
  if (made !== undefined) return <Made is={made} says="It is added, and gets events from now on." />
  const add = async () => {
    try {
      const settings = { tenant, ...body } as Parameters<typeof petrel.endpoints.create>[0]
      setMade(
        await (id === ""
          ? petrel.endpoints.create(settings, { idempotencyKey })
          : petrel.endpoints.put({ ...settings, id }, { ifNoneMatch: "*" }))
      )
      return undefined
    } catch (error) {
      if (!isProblem(error, "revision-mismatch")) throw error
      return { placed: {}, other: [`There is an endpoint ${tenant}/${id} already.`] }
    }
  }
  return (
    <form class="page" onSubmit={form.submit(add)}>
      <div class="title">
        <h1>New endpoint</h1>
        <div class="acts">
          <button type="submit" class="main" aria-disabled={form.isBusy}>
            Add it
          </button>
        </div>
      </div>
      <Settings
        {...{ form, tenant: tenant || "*" }}
        before={
          <div class="form">
            <TenantLine is={tenant} set={setTenant} />
            <WordLine
              id="id"
              value={id}
              set={setId}
              placeholder="one is made"
              says="1 to 64 letters, digits, - and _: it is in the ids of its deliveries."
            />
          </div>
        }
      />
      <Command
        text={endpointCommand(
          "add",
          `${tenant || "acme"}/${id || "billing"}`,
          endpointFields,
          body
        )}
        request={curlCommand(
          `/v1/tenants/${tenant}/endpoints${id === "" ? "" : `/${id}`}`,
          id === "" ? "POST" : "PUT",
          withoutSecrets(endpointFields, body)
        )}
      />
    </form>
  )
}

/** Who has changed it since a revision, newest first. */
const changesSince = async (
  place: { readonly tenant: string; readonly id: string },
  revision: number
): Promise<ReadonlyArray<EndpointChange>> => {
  const { changes } = await petrel.endpoints.history({ ...place, limit: 10 }).page()
  return changes.filter((one) => one.revision > revision)
}

const Meanwhile = ({ changes }: { readonly changes: ReadonlyArray<EndpointChange> }) =>
  changes.length === 0 ? null : (
    <div class="note warn" role="alert">
      <b aria-hidden="true">▲</b>
      <div>
        <p>
          Not saved: it was changed since you opened it. What you typed is kept; what you left as it
          was is as the others have it now. Look, and save again.
        </p>
        {changes.map(({ at, by, differences, revision }) => (
          <p key={revision}>
            <b>{by ?? "somebody"}</b>, <Ago at={at} />:{" "}
            {differences
              .map(({ from, setting, to }) => `${setting} ${valueText(from)} → ${valueText(to)}`)
              .join(", ")}
          </p>
        ))}
      </div>
    </div>
  )

const Edited = ({ first }: { readonly first: EndpointDetail }) => {
  const { id, tenant } = first
  const [base, setBase] = useState(first)
  const [changes, setChanges] = useState<ReadonlyArray<EndpointChange>>([])
  const [made, setMade] = useState<ChangedEndpoint>()
  const before = formOf(endpointFields, base as unknown as Record<string, unknown>)
  const form = useForm(endpointFields, before)
  const patch = patchOf(endpointFields, before, form.typed)
  const isChanged = Object.keys(patch).length > 0
  useDraft(isChanged && made === undefined)
  if (made !== undefined)
    return <Made is={made} says={`Saved: ${made.changed.join(", ") || "nothing differs"}.`} />
  const save = async () => {
    const unknown = placeProblems(endpointFields, maskProblems(patch))
    if (Object.keys(unknown.placed).length > 0) return unknown
    try {
      setMade(await petrel.endpoints.patch({ tenant, id, ...patch }, { ifMatch: base.revision }))
    } catch (error) {
      if (!isProblem(error, "revision-mismatch")) throw error
      // Both are shown at once.
      const [newer, newest] = await Promise.all([
        changesSince({ tenant, id }, base.revision),
        petrel.endpoints.get({ tenant, id })
      ])
      setChanges(newer)
      setBase(newest as EndpointDetail)
    }
    return undefined
  }
  const notes = Object.fromEntries(
    changes.flatMap(({ by, differences }) =>
      differences
        .filter(({ setting }) => Object.hasOwn(form.own, setting))
        .map(({ setting, to }) => [setting, `${by ?? "somebody"} has set ${valueText(to)}`])
    )
  )
  return (
    <form class="page" onSubmit={form.submit(save)}>
      <div class="title">
        <h1>
          {tenant}/{id}
        </h1>
        <span class="small">settings, revision {base.revision}</span>
        <div class="acts">
          <button type="button" onClick={() => go(address(["endpoints", tenant, id]))}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={!isChanged} aria-disabled={form.isBusy}>
            Save
          </button>
        </div>
      </div>
      <Meanwhile changes={changes} />
      <Settings {...{ form, tenant, notes }} />
      <Command
        text={endpointCommand("set", `${tenant}/${id}`, endpointFields, patch)}
        request={curlCommand(
          `/v1/tenants/${tenant}/endpoints/${id}`,
          "PATCH",
          withoutSecrets(endpointFields, patch)
        )}
      />
    </form>
  )
}

/** Changes an endpoint's settings, unless somebody else has changed them meanwhile. */
export const EditEndpoint = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => {
  const asked = useAsked(
    `settings ${tenant}/${id}`,
    async (options) => (await petrel.endpoints.get({ tenant, id }, options)) as EndpointDetail
  )
  return (
    <>
      {asked.value === undefined && (
        <h1>
          {tenant}/{id}
        </h1>
      )}
      <Answered asked={asked}>{(first) => <Edited first={first} />}</Answered>
    </>
  )
}
