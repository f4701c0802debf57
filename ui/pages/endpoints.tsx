import type { Endpoint } from "../../src/client/client.ts"
import { quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { Choice, Filter } from "../filters.tsx"
import { shownTenant } from "../frame.tsx"
import { Answered, Command, count, EndpointLink, Pager, Rows, State } from "../parts.tsx"
import { address, filter, query } from "../router.ts"
import { may, petrel } from "../session.ts"
import { Ago } from "../times.tsx"

const states = ["closed", "open", "half-open", "paused", "suspended", "disabled"] as const

const isState = (text: string | undefined): text is (typeof states)[number] =>
  states.some((state) => state === text)

/** The state of an endpoint: what its owner has done, else what its circuit does. */
export const stateOf = ({
  circuit,
  disabled,
  paused,
  suspended
}: Pick<Endpoint, "circuit" | "disabled" | "paused" | "suspended">): string => {
  if (disabled !== undefined) return "disabled"
  if (suspended !== undefined) return "suspended"
  if (paused !== undefined) return "paused"
  const { state = "closed" } = circuit
  return state === "open" ? "circuit open" : state
}

/** How many attempts have failed since its last success, which leads to these. */
export const FailuresInRow = ({
  of: { health, id, tenant }
}: {
  readonly of: Pick<Endpoint, "health" | "id" | "tenant">
}) =>
  health.failuresInRow === 0 ? (
    <>0</>
  ) : (
    <a
      href={address(["attempts"], {
        ...{ tenant, endpoint: id, outcome: "failure" },
        since: health.failingSince
      })}
    >
      {count(health.failuresInRow)}
    </a>
  )

/** The endpoints of a tenant, or of all. */
export const Endpoints = () => {
  const tenant = shownTenant()
  const { cursor, id, metadata, state } = query.value
  const chosen = {
    ...(id === undefined ? {} : { id }),
    ...(isState(state) ? { state } : {}),
    ...(metadata === undefined ? {} : { metadata })
  }
  const flags = Object.entries(chosen).map(([name, text]) => ` --${name} ${quoted(text)}`)
  const search = new URLSearchParams(chosen).toString()
  const asked = useAsked(
    `endpoints ${tenant} ${search} ${cursor}`,
    (options) => petrel.endpoints.list({ tenant, limit: 100, ...chosen }, options).page(cursor),
    5_000
  )
  return (
    <>
      <div class="title">
        <h1>Endpoints</h1>
        {may("endpoints:write") && (
          <div class="acts">
            <a class="btn" href={address(["endpoints", "new"], { tenant: query.value.tenant })}>
              New endpoint
            </a>
          </div>
        )}
      </div>
      <search class="filters" aria-label="Filters">
        <Filter name="id" hint="billing or bill*" />
        <Choice name="state" options={states} />
        <Filter name="metadata" hint="customer=4711" />
      </search>
      <Answered asked={asked}>
        {(page) => (
          <>
            <Rows
              items={page.endpoints}
              keyOf={({ id, tenant }) => `${tenant}/${id}`}
              empty={
                metadata !== undefined ? (
                  "No endpoint of this page has that entry of metadata."
                ) : state !== undefined ? (
                  "No endpoint is in this state now."
                ) : id !== undefined ? (
                  <>
                    No endpoint has this id. With a * at its end it is a beginning:{" "}
                    <code>{id.replace(/\*$/, "")}*</code>
                  </>
                ) : (
                  <>
                    <p>There is no endpoint yet. One gets events once it is added.</p>
                    <Command
                      text={`petrel endpoint add ${tenant === "*" ? "acme" : tenant}/billing --url https://billing.example.com/hooks --types 'invoice.*'`}
                    />
                  </>
                )
              }
              head={
                <>
                  <th>Endpoint</th>
                  <th>State</th>
                  <th class="hide-s">URL</th>
                  <th class="hide-s">Types</th>
                  <th class="n" title="Failures in a row">
                    Failures
                  </th>
                  <th class="n hide-t">Changed</th>
                </>
              }
              row={(one) => (
                <>
                  <td>
                    <EndpointLink tenant={one.tenant} id={one.id} />
                  </td>
                  <td>
                    <State is={stateOf(one)} />
                  </td>
                  <td class="hide-s mono grows" title={one.url}>
                    {one.url}
                  </td>
                  <td class="hide-s">{one.types.join(", ")}</td>
                  <td class="n">
                    <FailuresInRow of={one} />
                  </td>
                  <td class="n hide-t">
                    <Ago at={one.updatedAt} />
                  </td>
                </>
              )}
            />
            <Pager cursors={page} show={(to) => filter({ cursor: to })} />
          </>
        )}
      </Answered>
      <Command
        text={`petrel endpoint list${tenant === "*" ? "" : ` ${tenant}`}${flags.join("")}`}
        request={curlCommand(`/v1/tenants/${tenant}/endpoints${search === "" ? "" : `?${search}`}`)}
      />
    </>
  )
}
