import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ResentDelivery } from "../../operations/deliveries/resend-delivery.ts"
import { RetriedDelivery } from "../../operations/deliveries/retry-delivery.ts"
import { Diagnosis } from "../../operations/endpoints/diagnosis/diagnosis.ts"
import { RetriedEndpoint, RetryNowRequest } from "../../operations/endpoints/retry-now.ts"
import { TestEvent, TestReport } from "../../operations/endpoints/test-endpoint.ts"
import { Access, Needs } from "../access.ts"
import { NotFound } from "../problems.ts"
import { EndpointId, Tenant, tenantPath } from "./common.ts"
import { documented } from "./documented.ts"

const endpoint = `${tenantPath}/endpoints/:id` as const
const name = { tenant: Tenant, id: EndpointId }
const delivery = `${tenantPath}/deliveries/:delivery` as const
const ofDelivery = {
  tenant: Tenant,
  delivery: Schema.String.annotateKey({
    description: "The delivery's id, <event id>.<endpoint id>.",
    examples: ["acme.invoice-42-paid.billing"]
  })
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

const test = HttpApiEndpoint.post("test", `${endpoint}/test`, {
  params: name,
  payload: [TestBody, Schema.Null],
  success: documented(TestReport, {
    identifier: "TestReport",
    description: "What was sent to an endpoint as a test, and what it answered."
  }),
  error: [NotFound]
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Send an endpoint one test event, and show its answer")

const retryNow = HttpApiEndpoint.post("retryNow", `${endpoint}/retry-now`, {
  params: name,
  payload: [RetryBody, Schema.Null],
  success: documented(RetriedEndpoint, {
    identifier: "RetriedEndpoint",
    fields: { pace: "What sets the pace of its deliveries from here on." }
  }),
  error: [NotFound]
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Try now what waits for its next attempt")

const diagnose = HttpApiEndpoint.get("diagnose", `${endpoint}/diagnosis`, {
  params: name,
  success: documented(Diagnosis, {
    identifier: "Diagnosis",
    description: "Why an endpoint gets nothing or fails, and what to do."
  }),
  error: [NotFound]
})
  .annotate(Needs, "endpoints:read")
  .annotate(OpenApi.Summary, "Find out why an endpoint gets nothing or fails")

const retryDelivery = HttpApiEndpoint.post("retryDelivery", `${delivery}/retry`, {
  params: ofDelivery,
  payload: [RetryBody, Schema.Null],
  success: documented(RetriedDelivery, {
    identifier: "RetriedDelivery",
    fields: { pace: "What sets its pace from here on." }
  }),
  error: [NotFound]
})
  .annotate(Needs, "endpoints:write")
  .annotate(OpenApi.Summary, "Try a delivery now that waits for its next attempt")

const resend = HttpApiEndpoint.post("resend", `${delivery}/resend`, {
  params: ofDelivery,
  success: documented(ResentDelivery, {
    identifier: "ResentDelivery",
    description: "A delivery that is sent once more, in a round of its own."
  }).pipe(HttpApiSchema.status(202)),
  error: [NotFound]
})
  .annotate(Needs, "replay:write")
  .annotate(OpenApi.Summary, "Send a delivery once more, also one that succeeded")

/** Routes of attempts that somebody wants now. */
export class AttemptsGroup extends HttpApiGroup.make("attempts")
  .add(test, retryNow, diagnose, retryDelivery, resend)
  .middleware(Access)
  .annotate(OpenApi.Description, "What is sent because somebody wants it now.") {}
