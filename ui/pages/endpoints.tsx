import type { Endpoint } from "../../src/client/client.ts"
import { plainFlags } from "../command-line.ts"
import { curlCommand, withQuery } from "../curl.ts"
import { Choice, Filter } from "../filters.tsx"
import { shownTenant } from "../frame.tsx"
import { conditions, List, usePage } from "../list.tsx"
import { Command, count, EndpointLink, State } from "../parts.tsx"
import { address, query } from "../router.ts"
import { may, petrel } from "../session.ts"
import { Ago } from "../times.tsx"

const states = ["closed", "open", "half-open", "paused", "suspended", "disabled"]

/** States of a circuit, as a reader knows them who knows of no circuit. */
const words: Readonly<Record<string, string>> = { closed: "enabled", open: "circuit open" }

const filters = ["id", "state", "metadata"]

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
  return words[state] ?? state
}

/** How many attempts have failed in a row, transiently or for good, which leads to these. */
export const FailuresInRow = ({
  of: { health, id, tenant }
}: {
  readonly of: Pick<Endpoint, "health" | "id" | "tenant">
}) => {
  const failures = health.failuresInRow + health.permanentInRow
  return failures === 0 ? (
    <>0</>
  ) : (
    <a
      href={address(["attempts"], {
        ...{ tenant, endpoint: id, outcome: "failure" },
        since: health.failingSince
      })}
    >
      {count(failures)}
    </a>
  )
}

/** The endpoints of a tenant, or of all. */
export const Endpoints = () => {
  const tenant = shownTenant()
  const given = conditions(filters)
  const { id, metadata, state } = given
  const asked = usePage(
    "endpoints",
    filters,
    (given, options) => petrel.endpoints.list({ ...given, limit: 100 }, options),
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
        <Choice name="state" options={states} words={words} />
        <Filter name="metadata" hint="customer=4711" />
      </search>
      <List
        asked={asked}
        items={(page) => page.endpoints}
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
      <Command
        text={`petrel endpoint list${tenant === "*" ? "" : ` ${tenant}`}${plainFlags(given)}`}
        request={curlCommand(withQuery(`/v1/tenants/${tenant}/endpoints`, given))}
      />
    </>
  )
}
