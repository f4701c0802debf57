import { useState } from "preact/hooks"
import { quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { Rows } from "../list.tsx"
import {
  Action,
  Answered,
  AttemptsMade,
  Command,
  count,
  deliveryPage,
  EndpointLink,
  State
} from "../parts.tsx"
import { may, petrel } from "../session.ts"
import { Ago } from "../times.tsx"
import { bodyText } from "./delivery-request.tsx"

const Body = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => {
  const [shown, setShown] = useState<string>()
  if (!may("payloads:read")) return null
  return shown === undefined ? (
    <Action
      does={async () => {
        setShown(bodyText((await petrel.deliveries.eventBody({ tenant, event: id })).body))
        return ""
      }}
    >
      Show its payload
    </Action>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <pre class="sunk" tabIndex={0}>
      {shown}
    </pre>
  )
}

/** An event, and what became of it at each endpoint. */
export const Event = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => {
  const asked = useAsked(
    `event ${tenant} ${id}`,
    (options) => petrel.deliveries.event({ tenant, event: id }, options),
    ({ deliveries, routed }) =>
      routed && deliveries.every(({ state }) => state !== "open") ? 30_000 : 4_000
  )
  return (
    <>
      <h1 class="mono">{id}</h1>
      <Answered asked={asked}>
        {({ at, bytes, deliveries, routed, seq, type }) => (
          <>
            <section class="card">
              <dl class="facts">
                <dt>type</dt>
                <dd>{type ?? "–"}</dd>
                <dt>stored</dt>
                <dd>
                  <Ago at={at} />, as number {count(seq)} of its stream
                </dd>
                <dt>size</dt>
                <dd>
                  {bytes === undefined ? "the event is no longer kept" : `${count(bytes)} bytes`}
                </dd>
              </dl>
              {bytes !== undefined && (
                <div class="below">
                  <Body id={id} tenant={tenant} />
                </div>
              )}
            </section>
            <Rows
              items={deliveries}
              empty={
                routed
                  ? "No endpoint wanted it: none had its type among its event types."
                  : "It is stored. To which endpoints it goes is recorded in a moment, if a worker runs."
              }
              head={
                <>
                  <th>Endpoint</th>
                  <th>State</th>
                  <th class="hide-s">Reason</th>
                  <th class="n">Attempts</th>
                  <th class="hide-s">Delivery</th>
                </>
              }
              row={(one) => (
                <>
                  <td>
                    <EndpointLink tenant={tenant} id={one.endpoint} />
                  </td>
                  <td>
                    <a href={deliveryPage(tenant, one.delivery)}>
                      <State is={one.state === "open" ? "waiting" : one.state} />
                    </a>
                  </td>
                  <td class="hide-s">{one.reason ?? "–"}</td>
                  <td class="n">
                    <AttemptsMade of={{ ...one, tenant }} />
                  </td>
                  <td class="mono hide-s grows">
                    <a href={deliveryPage(tenant, one.delivery)}>{one.delivery}</a>
                  </td>
                </>
              )}
            />
          </>
        )}
      </Answered>
      <Command
        text={`petrel history --event ${quoted(id)}`}
        request={curlCommand(`/v1/tenants/${tenant}/events/${encodeURIComponent(id)}`)}
      />
    </>
  )
}
