import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { DeadReason } from "../../domain/outcome.ts"
import { DeadLetterDetail } from "../../operations/dead-letters/dead-letter-queries.ts"
import { statusProblem } from "../../operations/dead-letters/dead-letter-selection.ts"
import { DeadLetterView } from "../../operations/dead-letters/dead-letter-view.ts"
import { Access, Needs } from "../access.ts"
import { Conflict, NotFound } from "../problems.ts"
import { EndpointId, next, pageQuery, Tenant, TenantOrAll, Time, tenantPath } from "./common.ts"
import { documented } from "./documented.ts"

const texts = {
  id: "Its number.",
  event: "The event's id.",
  reason: "Why it ended without success.",
  deadAt: "When it ended, ms since the epoch.",
  deadline: "When it would have been given up, ms since the epoch.",
  redelivered: "What came of sending it again.",
  deliveredLate: "The receiver has it after all: a former owner recorded the success."
}

const Listed = documented(DeadLetterView, {
  identifier: "DeadLetter",
  description: "A delivery that ended without success.",
  fields: texts
})

const Detail = documented(DeadLetterDetail, {
  identifier: "DeadLetterDetail",
  description: "A dead letter: what was sent, and how each attempt went.",
  fields: {
    ...texts,
    body: "The body, if it is text, for tokens with the scope payloads:read.",
    bodyBase64: "The body, if it is not text, for tokens with the scope payloads:read."
  }
})

const number = Schema.NumberFromString.check(
  Schema.isInt(),
  Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
).annotateKey({ description: "The dead letter's number.", examples: [42] })

const one = `${tenantPath}/dead-letters/:number` as const

const list = HttpApiEndpoint.get("list", `${tenantPath}/dead-letters`, {
  params: { tenant: TenantOrAll },
  query: {
    ...pageQuery,
    endpoint: Schema.optionalKey(EndpointId),
    reason: Schema.optionalKey(DeadReason).annotateKey({
      description: "Only those that ended for this reason."
    }),
    status: Schema.optionalKey(
      Schema.String.check(Schema.makeFilter(statusProblem)).annotateKey({
        description: "The last answer's status, or its class.",
        examples: ["503", "5xx"]
      })
    ),
    since: Schema.optionalKey(Time),
    until: Schema.optionalKey(Time)
  },
  success: Schema.Struct({ deadLetters: Schema.Array(Listed), next }).annotate({
    identifier: "DeadLetterList"
  })
})
  .annotate(Needs, "dead:read")
  .annotate(OpenApi.Summary, "List deliveries that ended without success, oldest first")

const get = HttpApiEndpoint.get("get", one, {
  params: { tenant: Tenant, number },
  success: Detail,
  error: [NotFound]
})
  .annotate(Needs, "dead:read")
  .annotate(OpenApi.Summary, "Show a dead letter, and how each attempt went")

const discard = HttpApiEndpoint.delete("discard", one, {
  params: { tenant: Tenant, number },
  success: Schema.Struct({ id: Schema.Int, discarded: Schema.Literal(true) }).annotate({
    identifier: "DiscardedDeadLetter"
  }),
  error: [NotFound, Conflict]
})
  .annotate(Needs, "dead:write")
  .annotate(OpenApi.Summary, "Remove a dead letter for good")

/** Routes of dead letters. */
export class DeadLettersGroup extends HttpApiGroup.make("deadLetters")
  .add(list, get, discard)
  .middleware(Access)
  .annotate(OpenApi.Description, "Deliveries that ended without success.") {}
