import type { ComponentChildren } from "preact"
import { useEffect, useMemo, useState } from "preact/hooks"
import {
  type ChangedEndpoint,
  type EndpointChange,
  type EndpointDetail,
  isProblem
} from "../../src/client/client.ts"
import { endpointCommand, withoutSecrets } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { problemText, useAsked } from "../data.ts"
import {
  type Field,
  formOf,
  maskProblems,
  patchOf,
  placeProblems,
  type Typed,
  valuesOf
} from "../fields.ts"
import { Lines, Problems } from "../form.tsx"
import { shownTenant } from "../frame.tsx"
import { endpointFields } from "../generated/forms.ts"
import { Answered, Command, Once } from "../parts.tsx"
import { address, go } from "../router.ts"
import { petrel } from "../session.ts"
import { Ago } from "../times.tsx"
import { nothingWrong, type Wrong, wrongIn } from "../wrong.ts"

/** What most endpoints set; the rest is folded. */
const usualNames = new Set(["url", "types", "description", "sign", "retry", "maxInFlight", "rate"])
const isUsual = ({ name }: Field): boolean => usualNames.has(name)

const usePresets = (tenant: string): ReadonlyArray<string> => {
  const asked = useAsked(`presets ${tenant}`, (options) =>
    petrel.settings.presets({ tenant }, options)
  )
  return asked.value?.presets.map(({ name }) => name) ?? []
}

interface SettingsProps {
  readonly tenant: string
  readonly before?: ComponentChildren
  readonly typed: Typed
  readonly type: (path: string, text: string) => void
  readonly wrong: Wrong
  readonly notes?: Typed
}

const Settings = ({ before, tenant, wrong, ...form }: SettingsProps) => {
  const suggested = { retry: usePresets(tenant) }
  const problems = wrong.placed
  const rest = endpointFields.filter((field) => !isUsual(field))
  // A problem must not be hidden.
  const isRestWrong = Object.keys(problems).some((path) =>
    rest.some(({ name }) => path === name || path.startsWith(`${name}.`))
  )
  return (
    <>
      <Problems texts={wrong.other} />
      <section class="card">
        {before}
        <Lines
          {...form}
          fields={endpointFields.filter(isUsual)}
          problems={problems}
          suggested={suggested}
        />
        <details class="more" open={isRestWrong}>
          <summary>More settings</summary>
          <Lines {...form} fields={rest} problems={problems} suggested={suggested} />
        </details>
      </section>
    </>
  )
}

/** What came of it: a secret is shown this once. */
const Made = ({ is, says }: { readonly is: ChangedEndpoint; readonly says: string }) => (
  <section class="card" role="status">
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
)

/** Adds an endpoint. */
export const NewEndpoint = () => {
  const shown = shownTenant()
  const [tenant, setTenant] = useState(shown === "*" ? "" : shown)
  const [id, setId] = useState("")
  const [typed, setTyped] = useState<Typed>({})
  const [wrong, setWrong] = useState(nothingWrong)
  const [made, setMade] = useState<ChangedEndpoint>()
  const [isBusy, setBusy] = useState(false)
  const body = valuesOf(endpointFields, typed)
  const bodyText = JSON.stringify(body)
  // The same request, sent again after an answer that was lost, adds nothing twice.
  const idempotencyKey = useMemo(() => crypto.randomUUID(), [tenant, bodyText])
  if (made !== undefined)
    return (
      <>
        <h1>{`${made.tenant}/${made.id}`}</h1>
        <Made is={made} says="It is added, and gets events from now on." />
      </>
    )
  const add = async () => {
    setBusy(true)
    try {
      const settings = { tenant, ...body } as Parameters<typeof petrel.endpoints.create>[0]
      setMade(
        await (id === ""
          ? petrel.endpoints.create(settings, { idempotencyKey })
          : petrel.endpoints.put({ ...settings, id }, { ifNoneMatch: "*" }))
      )
    } catch (error) {
      setWrong(
        isProblem(error, "revision-mismatch")
          ? { placed: {}, other: [`There is an endpoint ${tenant}/${id} already.`] }
          : wrongIn(endpointFields, error)
      )
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
        <h1>New endpoint</h1>
        <div class="acts">
          <button type="submit" class="main" disabled={isBusy}>
            Add it
          </button>
        </div>
      </div>
      <Settings
        {...{ tenant: tenant || "*", typed, wrong }}
        type={(path, text) => setTyped((before) => ({ ...before, [path]: text }))}
        before={
          <div class="form">
            {shown === "*" && (
              <>
                <label for="tenant">tenant</label>
                <input
                  id="tenant"
                  required
                  value={tenant}
                  onInput={(event) => setTenant(event.currentTarget.value.trim())}
                />
              </>
            )}
            <label for="id">id</label>
            <div>
              <input
                id="id"
                value={id}
                placeholder="one is made"
                onInput={(event) => setId(event.currentTarget.value.trim())}
              />
              <small>1 to 64 letters, digits, - and _: it is in the ids of its deliveries.</small>
            </div>
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

const valueText = (value: unknown): string =>
  value === undefined ? "none" : typeof value === "string" ? value : JSON.stringify(value)

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
  const [typed, setTyped] = useState<Typed>({})
  const [wrong, setWrong] = useState(nothingWrong)
  const [changes, setChanges] = useState<ReadonlyArray<EndpointChange>>([])
  const [made, setMade] = useState<ChangedEndpoint>()
  const [isBusy, setBusy] = useState(false)
  const before = formOf(endpointFields, base as unknown as Record<string, unknown>)
  const patch = patchOf(endpointFields, before, { ...before, ...typed })
  const isChanged = Object.keys(patch).length > 0
  useEffect(() => {
    if (!isChanged || made !== undefined) return
    const ask = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener("beforeunload", ask)
    return () => removeEventListener("beforeunload", ask)
  }, [isChanged, made])
  if (made !== undefined)
    return <Made is={made} says={`Saved: ${made.changed.join(", ") || "nothing differs"}.`} />
  const save = async () => {
    const unknown = placeProblems(endpointFields, maskProblems(patch))
    setWrong(unknown)
    if (Object.keys(unknown.placed).length > 0) return
    setBusy(true)
    try {
      const saved = await petrel.endpoints.patch(
        { tenant, id, ...patch },
        { ifMatch: base.revision }
      )
      setMade(saved)
    } catch (error) {
      if (isProblem(error, "revision-mismatch")) {
        try {
          // Both are shown at once.
          const [newer, newest] = await Promise.all([
            changesSince({ tenant, id }, base.revision),
            petrel.endpoints.get({ tenant, id })
          ])
          setChanges(newer)
          setBase(newest as EndpointDetail)
        } catch (failure) {
          setWrong({ placed: {}, other: [problemText(failure)] })
        }
      } else setWrong(wrongIn(endpointFields, error))
    }
    setBusy(false)
  }
  const notes = Object.fromEntries(
    changes.flatMap(({ by, differences }) =>
      differences
        .filter(({ setting }) => Object.hasOwn(typed, setting))
        .map(({ setting, to }) => [setting, `${by ?? "somebody"} has set ${valueText(to)}`])
    )
  )
  return (
    <form
      class="page"
      onSubmit={(event) => {
        event.preventDefault()
        void save()
      }}
    >
      <div class="title">
        <h1>
          {tenant}/{id}
        </h1>
        <span class="small">settings, revision {base.revision}</span>
        <div class="acts">
          <button type="button" onClick={() => go(address(["endpoints", tenant, id]))}>
            Cancel
          </button>
          <button type="submit" class="main" disabled={isBusy || !isChanged}>
            Save
          </button>
        </div>
      </div>
      <Meanwhile changes={changes} />
      <Settings
        {...{ tenant, wrong, notes }}
        typed={{ ...before, ...typed }}
        type={(path, text) => setTyped((others) => ({ ...others, [path]: text }))}
      />
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
