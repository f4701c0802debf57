import { Effect, Schema } from "effect"
import { withoutCommands } from "../../text/plain-text.ts"
import { asCaller, Caller } from "../caller.ts"
import { ResentDelivery, resendDelivery } from "../deliveries/resend-delivery.ts"
import { Diagnosis, diagnoseEndpoint } from "../endpoints/diagnosis/diagnose-endpoint.ts"
import { TestEvent, TestReport, testEndpoint } from "../endpoints/test-endpoint.ts"
import { documented, operation, operationGroup, withStatus } from "../operation.ts"
import { DeliveryId, EndpointId, endpointIn, Tenant, tenantPath } from "../parameters.ts"
import {
  RetriedDelivery,
  RetriedEndpoint,
  RetryNowRequest,
  retryDelivery,
  retryEndpointNow
} from "./retry-endpoint.ts"

const endpoint = `${tenantPath}/endpoints/:id` as const
const name = { tenant: Tenant, id: EndpointId }
const delivery = `${tenantPath}/deliveries/:delivery` as const
const ofDelivery = {
  tenant: Tenant.annotateKey({ description: "The name of the tenant." }),
  delivery: DeliveryId
}

const RetryBody = documented(RetryNowRequest, {
  identifier: "RetryNow",
  fields: {
    ignoreRetryAfter: "Do not wait for the end of the receiver's Retry-After. (Default: false)"
  }
})

const TestBody = documented(TestEvent, {
  identifier: "TestEvent",
  fields: {
    type: "Its type. (Default: petrel.test)",
    body: "Its body. (Default: a JSON object that says what it is)",
    contentType: "(Default: application/json)"
  }
})

const test = operation("test", "POST", `${endpoint}/test`, {
  scope: "endpoints:write",
  summary: "Send an endpoint one test event, and show its answer",
  description:
    "A type other than petrel.test, or a body, needs the scope events:publish, too. The values of the signature and of the endpoint's own headers are masked, and what the receiver answered but for its status is shown with the scope payloads:read only.",
  params: name,
  payload: [TestBody, Schema.Null],
  output: documented(TestReport, {
    identifier: "TestReport",
    description: "What was sent to an endpoint as a test, and what it answered."
  }),
  refusals: ["not-found"],
  once: (report) => report,
  within: ({ params }) => params.id,
  run: ({ params, payload }) =>
    Effect.flatMap(Caller, (caller) => testEndpoint(params, payload ?? {}, caller))
})

const withoutCommandsInPace = <A extends { readonly pace: ReadonlyArray<string> }>(
  retried: A
): A => ({
  ...retried,
  pace: retried.pace.map(withoutCommands)
})

const retryNow = operation("retryNow", "POST", `${endpoint}/retry-now`, {
  scope: "endpoints:write",
  summary: "Try now what waits for its next attempt",
  params: name,
  payload: [RetryBody, Schema.Null],
  output: documented(RetriedEndpoint, {
    identifier: "RetriedEndpoint",
    fields: { pace: "What sets the pace of its deliveries from here on." }
  }),
  refusals: ["not-found", "conflict"],
  within: ({ params }) => params.id,
  run: ({ params, payload }) =>
    Effect.map(
      asCaller((by) => retryEndpointNow(params, payload ?? {}, by)),
      withoutCommandsInPace
    )
})

const diagnose = operation("diagnose", "GET", `${endpoint}/diagnosis`, {
  scope: "endpoints:read",
  summary: "Find out why an endpoint gets nothing or fails",
  description: "What the receiver answered is quoted with the scope payloads:read only.",
  params: name,
  output: documented(Diagnosis, {
    identifier: "Diagnosis",
    description: "Why an endpoint gets nothing or fails, and what to do."
  }),
  refusals: ["not-found"],
  within: ({ params }) => params.id,
  run: ({ params }) =>
    Effect.map(
      Effect.flatMap(Caller, (caller) => diagnoseEndpoint(params, caller)),
      ({ advice, checks, ...found }) => ({
        ...found,
        checks: checks.map(({ advice, ...check }) => ({
          ...check,
          ...(advice === undefined ? {} : { advice: withoutCommands(advice) })
        })),
        advice: advice.map(withoutCommands)
      })
    )
})

const retryOne = operation("retryDelivery", "POST", `${delivery}/retry`, {
  scope: "endpoints:write",
  summary: "Try a delivery now that waits for its next attempt",
  params: ofDelivery,
  payload: [RetryBody, Schema.Null],
  output: documented(RetriedDelivery, {
    identifier: "RetriedDelivery",
    fields: { pace: "What sets its pace from here on." }
  }),
  refusals: ["not-found", "conflict"],
  within: ({ params }) => endpointIn(params.delivery),
  run: ({ params: { delivery, tenant }, payload }) =>
    Effect.map(
      asCaller((by) => retryDelivery(delivery, tenant, payload ?? {}, by)),
      withoutCommandsInPace
    )
})

const resend = operation("resend", "POST", `${delivery}/resend`, {
  scope: "replay:write",
  summary: "Send a delivery once more, also one that succeeded",
  params: ofDelivery,
  output: withStatus(
    documented(ResentDelivery, {
      identifier: "ResentDelivery",
      description: "A delivery that is sent once more, in a round of its own."
    }),
    202
  ),
  refusals: ["not-found", "conflict"],
  once: (resent) => resent,
  within: ({ params }) => endpointIn(params.delivery),
  run: ({ params: { delivery, tenant } }) => asCaller((by) => resendDelivery(delivery, tenant, by))
})

/** Operations that try or send something now. */
export const attemptOperations = operationGroup(
  "attempts",
  "What is sent now, on request.",
  test,
  retryNow,
  diagnose,
  retryOne,
  resend
)
