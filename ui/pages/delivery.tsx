import type { EndpointDetail, Delivery as Shown } from "../../src/client/client.ts"
import { quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { leftText } from "../job-texts.ts"
import { Action, Acts, Answered, Command, EndpointLink, State } from "../parts.tsx"
import { address } from "../router.ts"
import { may, petrel, session } from "../session.ts"
import { RoundLife } from "./delivery-life.tsx"
import { RequestSent } from "./delivery-request.tsx"

const eventOf = ({ event, eventSeq }: Shown): string => event ?? `evt_${eventSeq}`

/** The life of a delivery, why it waits, and what can be done. */
export const Delivery = ({ id, tenant }: { readonly id: string; readonly tenant: string }) => {
  const asked = useAsked(
    `delivery ${tenant} ${id}`,
    (options) => petrel.deliveries.delivery({ tenant, delivery: id }, options),
    // One that has ended changes only if somebody sends it again.
    ({ rounds }) => (rounds.some(({ state }) => state === "open") ? 3_000 : 10_000)
  )
  const isOpen = asked.value?.rounds.some(({ state }) => state === "open") === true
  const isOver = asked.value !== undefined && !isOpen
  const dead = isOpen ? undefined : asked.value?.rounds.at(-1)?.end?.dead
  const place = { tenant, id: asked.value?.endpoint ?? "" }
  // Neither changes while one looks: they are asked once.
  const endpoint = useAsked(`endpoint of ${tenant}/${place.id}`, async (options) =>
    place.id === "" || !may("endpoints:read")
      ? undefined
      : ((await petrel.endpoints.get(place, options)) as EndpointDetail)
  )
  const type = asked.value?.type
  const policies = useAsked(`policy of ${tenant}/${place.id} ${type}`, async (options) =>
    place.id === "" || !may("endpoints:read")
      ? undefined
      : await petrel.endpoints.retryPolicies(
          { ...place, ...(type === undefined ? {} : { type }) },
          options
        )
  )
  const policy = policies.value?.policies[0]
  const curl = curlCommand(`/v1/tenants/${tenant}/deliveries/${encodeURIComponent(id)}`)
  return (
    <>
      <div class="title">
        <h1 class="mono">{id}</h1>
        {asked.value !== undefined && (
          <State is={isOpen ? "waiting" : (asked.value.rounds.at(-1)?.state ?? "waiting")} />
        )}
        <Acts usual={`petrel delivery show ${quoted(id)} --tenant ${quoted(tenant)}`}>
          {isOpen && may("endpoints:write") && (
            <Action
              command={`petrel delivery retry ${quoted(id)} --tenant ${quoted(tenant)}`}
              does={async () => {
                const { state } = await petrel.attempts.retryDelivery({ tenant, delivery: id })
                asked.again()
                return state === "moved" ? "its wait is over" : `it was not waiting: ${state}`
              }}
            >
              Retry now
            </Action>
          )}
          {dead !== undefined && !may("replay:write") && may("dead:write") && (
            // Who may not send again what has arrived may send what has not.
            <Action
              main
              confirm="Send its dead letter again?"
              does={async () => {
                const request = { tenant, endpoint: place.id, id: [dead] }
                const plan = await petrel.jobs.redeliver({ ...request, dryRun: true })
                if (plan.redeliver === 0) return `not sent: ${leftText(plan)}`
                await petrel.jobs.redeliver(request)
                asked.again()
                return "it is sent again in a moment"
              }}
            >
              Send again
            </Action>
          )}
          {isOver && may("replay:write") && (
            <Action
              main
              command={`petrel delivery resend ${quoted(id)} --tenant ${quoted(tenant)}`}
              confirm="Send it to its endpoint once more?"
              does={async () => {
                await petrel.attempts.resend({ tenant, delivery: id })
                asked.again()
                return "it is sent again"
              }}
            >
              Send again
            </Action>
          )}
        </Acts>
      </div>
      <Answered asked={asked}>
        {(delivery) => (
          <section class="row">
            <div class="wide">
              {delivery.rounds.toReversed().map((round) => (
                <RoundLife key={round.round} of={delivery} policy={policy} round={round} />
              ))}
            </div>
            <div>
              <div class="card">
                <h2>Event</h2>
                <dl class="facts">
                  <dt>id</dt>
                  <dd class="mono">
                    {session.value?.endpoint === undefined ? (
                      <a href={address(["events", delivery.tenant, eventOf(delivery)])}>
                        {eventOf(delivery)}
                      </a>
                    ) : (
                      eventOf(delivery)
                    )}
                  </dd>
                  <dt>type</dt>
                  <dd>{delivery.type ?? "–"}</dd>
                  <dt>endpoint</dt>
                  <dd>
                    <EndpointLink tenant={delivery.tenant} id={delivery.endpoint} />
                  </dd>
                  {policy !== undefined && (
                    <>
                      <dt>policy</dt>
                      <dd>{policy.name}</dd>
                    </>
                  )}
                  <dt>sequence</dt>
                  <dd>{delivery.eventSeq}</dd>
                </dl>
              </div>
              <RequestSent delivery={delivery} endpoint={endpoint.value} id={id} />
            </div>
          </section>
        )}
      </Answered>
      <Command text={curl} request={curl} />
    </>
  )
}
