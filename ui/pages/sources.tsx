import type { Source } from "../../src/client/client.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { type Field, formOf } from "../fields.ts"
import { Lines, Problems, useDraft, useForm } from "../form.tsx"
import { shownTenant } from "../frame.tsx"
import { sourceFields } from "../generated/forms.ts"
import { List } from "../list.tsx"
import { Action, Acts, Answered, Command, Copy } from "../parts.tsx"
import { address, go, query } from "../router.ts"
import { may, petrel } from "../session.ts"
import { Ago } from "../times.tsx"
import { ChangeSource } from "./source-form.tsx"

const sourcePage = ({ id, tenant }: Pick<Source, "id" | "tenant">): string =>
  address(["sources", tenant, id])

/** What is set of a source, in words. */
const settingText = (of: Source, name: string): string =>
  formOf(
    sourceFields.filter((field) => field.name === name),
    of as unknown as Record<string, unknown>
  )[name] ?? ""

/** The providers whose webhooks come in. */
export const Sources = () => {
  const tenant = shownTenant()
  const asked = useAsked(
    `sources ${tenant}`,
    (options) => petrel.sources.list({ tenant }, options),
    10_000
  )
  return (
    <>
      <div class="title">
        <h1>Sources</h1>
        {may("endpoints:write") && (
          <div class="acts">
            <a class="btn" href={address(["sources", "new"], { tenant: query.value.tenant })}>
              New source
            </a>
          </div>
        )}
      </div>
      <List
        asked={asked}
        items={({ sources }) => sources}
        keyOf={({ id, tenant }) => `${tenant}/${id}`}
        empty={
          <>
            <p>
              No provider's webhooks come in yet. Add a source with the provider's secret, let a
              gateway run, and give the provider its address.
            </p>
            <Command
              text={`petrel source add ${tenant === "*" ? "acme" : tenant}/stripe --provider stripe --secret-file stripe.secret`}
            />
            <Command text="petrel ingest" />
          </>
        }
        head={
          <>
            <th>Source</th>
            <th>Provider</th>
            <th class="hide-s">Posts to</th>
            <th class="n hide-s">Secrets</th>
            <th class="hide-s">Rate</th>
            <th class="n">Changed</th>
          </>
        }
        row={(one) => (
          <>
            <td>
              <a href={sourcePage(one)}>
                {one.tenant}/{one.id}
              </a>
            </td>
            <td>{one.provider}</td>
            <td class="hide-s mono">{one.path}</td>
            <td class="n hide-s">
              <a href={sourcePage(one)}>{one.secrets.length}</a>
            </td>
            <td class="hide-s">{settingText(one, "rate") || "no limit"}</td>
            <td class="n">
              <Ago at={one.updatedAt} />
            </td>
          </>
        )}
      />
      <Command
        text={`petrel source list${tenant === "*" ? "" : ` --tenant ${tenant}`}`}
        request={curlCommand(`/v1/tenants/${tenant}/sources`)}
      />
    </>
  )
}

const rotationFields: ReadonlyArray<Field> = [
  { name: "secret", text: "", kind: { is: "text" }, isSecret: true, removal: "never" },
  {
    ...{ name: "keepOld", text: "How long the old ones hold.", removal: "never" },
    ...{ usual: "24 hours", kind: { is: "choice", options: ["0 seconds", "1 hour", "7 days"] } }
  }
]

/** Gives it a new secret, which its provider has made. */
const Rotation = ({ again, of }: { readonly again: () => void; readonly of: Source }) => {
  const { clear, isBusy, lines, says, submit, typed, wrong } = useForm(rotationFields)
  const { tenant, id } = of
  const { keepOld, secret = "" } = typed
  useDraft(secret !== "")
  const rotate = async () => {
    if (secret === "") return says
    await petrel.sources.rotate({ tenant, id, secret, ...(keepOld ? { keepOld } : {}) })
    clear()
    again()
    return "The new secret holds."
  }
  return (
    <form class="page" onSubmit={submit(rotate)}>
      <Problems texts={wrong.other} />
      <Lines {...lines} />
      <div class="acts">
        <button type="submit" aria-disabled={isBusy || secret === ""}>
          Rotate
        </button>
        {says !== undefined && <small role="status">{says}</small>}
      </div>
      <Command
        text={`petrel source rotate ${tenant}/${id} --secret-file FILE${keepOld ? ` --keep-old '${keepOld}'` : ""}`}
        request={curlCommand(`/v1/tenants/${tenant}/sources/${id}/rotate`, "POST", {
          secret: "SECRET",
          keepOld
        })}
      />
    </form>
  )
}

const Secrets = ({ again, of }: { readonly again: () => void; readonly of: Source }) => (
  <div class="card">
    <h2>Secrets</h2>
    {of.secrets.length === 0 && <p class="small">It has none: its provider needs none.</p>}
    <dl class="facts">
      {of.secrets.map(({ createdAt, until }, at) => (
        <>
          <dt>{at === 0 ? "newest" : "older"}</dt>
          <dd>
            made <Ago at={createdAt} />
            {until !== undefined && (
              <>
                , holds until <Ago at={until} />
              </>
            )}
          </dd>
        </>
      ))}
    </dl>
    {may("endpoints:write") && (
      <details>
        <summary>Rotate</summary>
        <Rotation again={again} of={of} />
      </details>
    )}
  </div>
)

/** One source: where its provider posts, and what is set. */
export const SourceShown = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => {
  const asked = useAsked(`source ${tenant}/${id}`, (options) =>
    petrel.sources.get({ tenant, id }, options)
  )
  const name = `${tenant}/${id}`
  return (
    <>
      <div class="title">
        <h1>{name}</h1>
        {asked.value !== undefined && (
          <>
            <span class="small">{asked.value.provider}</span>
            <Acts usual={`petrel source show ${name}`}>
              {may("endpoints:write") && (
                <Action
                  command={`petrel source remove ${name}`}
                  confirm={`Remove ${name}? What its provider sends from then on is refused.`}
                  does={async () => {
                    await petrel.sources.remove({ tenant, id })
                    go(address(["sources"], { tenant: query.value.tenant }))
                    return "it is removed"
                  }}
                >
                  Remove
                </Action>
              )}
            </Acts>
          </>
        )}
      </div>
      <Answered asked={asked}>
        {(of) => (
          <section class="row">
            <div class="wide">
              <div class="card">
                <h2>Where its provider posts</h2>
                <div class="cmd bare">
                  <code>{of.path}</code>
                  <Copy text={of.path} />
                </div>
                <p class="small">
                  on a gateway (<code>petrel ingest</code>): the address that other machines reach
                  it by, and this path.
                </p>
                <p>
                  <a href={address(["deliveries"], { tenant, type: `${id}.*` })}>
                    Deliveries of its events
                  </a>
                  {" · "}
                  <a href={address(["events"], { tenant, type: `${id}.*` })}>Its events</a>
                  {may("payloads:read") && (
                    <>
                      {" · "}
                      <a href={address(["quarantine"], { tenant })}>Quarantine</a>
                    </>
                  )}
                </p>
              </div>
              {may("endpoints:write") && <ChangeSource again={asked.again} of={of} />}
            </div>
            <div>
              <Secrets again={asked.again} of={of} />
            </div>
          </section>
        )}
      </Answered>
    </>
  )
}
