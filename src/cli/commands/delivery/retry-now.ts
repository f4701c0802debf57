import { Effect, Schema } from "effect"
import { Command } from "effect/cli"
import { plainText } from "../../../history/line.ts"
import type { RetriedDelivery as Delivery } from "../../../operations/deliveries/retry-delivery.ts"
import { RetriedDelivery, retryDelivery } from "../../../operations/deliveries/retry-delivery.ts"
import { endpointLabel } from "../../../operations/endpoints/endpoint-settings.ts"
import { RetriedEndpoint, retryEndpointNow } from "../../../operations/endpoints/retry-now.ts"
import { countText, plural } from "../../../operations/text/number-format.ts"
import { endpointArgument, isSet, tenantFlag, thisUser } from "../../flags/shared.ts"
import { connected, report } from "../../root-command.ts"
import { deliveryIdArgument } from "./show.ts"

const encodeDelivery = Schema.encodeSync(RetriedDelivery)
const encodeEndpoint = Schema.encodeSync(RetriedEndpoint)

const ignoreFlag = isSet(
  "ignore-retry-after",
  "Do not wait for the end of the Retry-After that the receiver asked for"
)

const stateTexts: Readonly<Record<Delivery["state"], string>> = {
  moved: "goes on now",
  "in-flight": "is being attempted, or about to be",
  backlog: "waits for its endpoint and goes on as soon as that takes it",
  left: "stays as it is: its endpoint's backlog is full"
}

const withPace = (says: string, pace: ReadonlyArray<string>): string =>
  [`${says}. From here on:`, ...pace.map((line) => `  ${line}`)].join("\n")

const counted = ({ inBacklog, inFlight, left, moved }: RetriedEndpoint): string => {
  const all = [
    ...(moved === 0 ? [] : [`${plural(moved, "delivery goes", "deliveries go")} on now`]),
    ...(inFlight === 0 ? [] : [`${countText(inFlight)} in flight or in line already`]),
    ...(inBacklog === 0 ? [] : [`${countText(inBacklog)} in the backlog already`]),
    ...(left === 0 ? [] : [`${countText(left)} stay as they are: the backlog is full`])
  ]
  return all.length === 0 ? "nothing waits for it" : all.join(", ")
}

/** Tries one delivery now. */
export const deliveryRetry = Command.make(
  "retry",
  { id: deliveryIdArgument, tenant: tenantFlag, ignoreRetryAfter: ignoreFlag },
  Effect.fnUntraced(function* ({ id, ignoreRetryAfter, tenant }) {
    const request = { ignoreRetryAfter }
    const retried = yield* retryDelivery(id, tenant, request, thisUser()).pipe(
      Effect.provide(connected)
    )
    const says = `${plainText(id)} ${stateTexts[retried.state]}`
    yield* report(encodeDelivery(retried), withPace(says, retried.pace))
  })
).pipe(
  Command.withDescription(
    "Try a delivery now that waits for its next attempt. That is one of its attempts as any other. A probe of its endpoint's open circuit comes at once, too"
  ),
  Command.withShortDescription("Try a waiting delivery now"),
  Command.withExamples([{ command: "petrel delivery retry acme.invoice-42.billing" }])
)

/** Tries all deliveries of an endpoint now. */
export const endpointRetryNow = Command.make(
  "retry-now",
  { name: endpointArgument, ignoreRetryAfter: ignoreFlag },
  Effect.fnUntraced(function* ({ ignoreRetryAfter, name }) {
    const retried = yield* retryEndpointNow(name, { ignoreRetryAfter }, thisUser()).pipe(
      Effect.provide(connected)
    )
    yield* report(
      encodeEndpoint(retried),
      withPace(`${endpointLabel(name)}: ${counted(retried)}`, retried.pace)
    )
  })
).pipe(
  Command.withDescription(
    "Let all that waits for an endpoint go on now, as after a fix: under its cap, rate and ramp, beginning with a probe if its circuit is open"
  ),
  Command.withShortDescription("Try all that waits for an endpoint now"),
  Command.withExamples([{ command: "petrel endpoint retry-now acme/billing" }])
)
