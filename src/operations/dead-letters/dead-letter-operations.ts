import { Effect, Schema } from "effect"
import { DeadReason } from "../../domain/outcome.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { TypeFilter } from "../../domain/type-filter.ts"
import { several } from "../../projection/delivery-log.ts"
import { Caller, maySeeAnswers, withoutAnswer } from "../caller.ts"
import { readingHistory } from "../history/history-readings.ts"
import { documented, operation, operationGroup } from "../operation.ts"
import {
  checkEndpoints,
  defaultLimit,
  EndpointId,
  makeCursor,
  next,
  onlyOne,
  pageQuery,
  Tenant,
  TenantOrAll,
  tenantOf,
  tenantPath,
  wholeNumber
} from "../parameters.ts"
import { Contradiction, DeadLettersNotFound } from "../refusals.ts"
import {
  DeadLetterDetail,
  DeadLetterPosition,
  DeadLetterView,
  pageDeadLetters,
  showDeadLetter
} from "./dead-letter-queries.ts"
import { StatusFilter } from "./dead-letter-selection.ts"
import { planDiscard } from "./discard-dead-letters.ts"

const texts = {
  id: "Its number.",
  event: "The event's id.",
  reason: "Why it ended without success.",
  deadAt: "When it ended.",
  deadline: "When it would have been given up.",
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
    history:
      "The facts of its attempts; what the receiver answered, for tokens with the scope payloads:read.",
    body: "The body, if it is text, for tokens with the scope payloads:read.",
    bodyBase64: "The body, if it is not text, for tokens with the scope payloads:read."
  }
})

const number = wholeNumber().annotateKey({
  description: "The dead letter's number.",
  examples: [42]
})

const previous = Schema.optionalKey(Schema.String).annotateKey({
  description: "The `cursor` of the page before, of what is older; absent on the first."
})

const pages = makeCursor("dead-letters", DeadLetterPosition)

const withoutPayloads = ({
  body: _,
  bodyBase64: __,
  history,
  ...rest
}: DeadLetterDetail): DeadLetterDetail => ({ ...rest, history: history.map(withoutAnswer) })

const one = `${tenantPath}/dead-letters/:number` as const

const list = operation("list", "GET", `${tenantPath}/dead-letters`, {
  scope: "dead:read",
  summary: "List deliveries that ended without success, oldest first",
  params: { tenant: TenantOrAll },
  query: {
    ...pageQuery,
    endpoint: several(EndpointId).annotateKey({
      description:
        "Only those of this endpoint. May be repeated, as `reason` and `status`: any holds."
    }),
    reason: several(DeadReason).annotateKey({
      description: "Only those that ended for this reason."
    }),
    status: several(StatusFilter).annotateKey({
      description: "The last answer's status, or its class: `503`, `5xx`."
    }),
    type: several(TypeFilter).annotateKey({
      description: "Only those of these event types: `invoice.paid`, `invoice.*`."
    }),
    since: Schema.optionalKey(Timestamp.annotateKey({ description: "Ended from then on." })),
    until: Schema.optionalKey(Timestamp.annotateKey({ description: "Ended up to then." })),
    open: Schema.optionalKey(Schema.Boolean).annotateKey({
      description:
        "`true`: only those that were neither sent again nor delivered late. Such a page looks at 1,000 at most: it may be shorter than `limit`, and yet have `next`. (Default: false)"
    })
  },
  output: Schema.Struct({
    deadLetters: Schema.Array(Listed).annotateKey({ description: "The dead letters." }),
    next,
    previous
  }).annotate({
    identifier: "DeadLetterList"
  }),
  within: ({ query }) => onlyOne(query.endpoint),
  run: ({ params, query }) =>
    Effect.gen(function* () {
      const { cursor, endpoint, limit = defaultLimit, open, ...rest } = query
      const tenant = tenantOf(params.tenant)
      yield* checkEndpoints(tenant, endpoint)
      const of =
        tenant === undefined || endpoint === undefined
          ? undefined
          : endpoint.map((id) => ({ tenant, id }))
      const filter = { ...rest, tenant, endpoint: of, open }
      const at = yield* pages.read(cursor)
      const { deadLetters, next, previous } = yield* readingHistory(
        pageDeadLetters(filter, at, limit)
      )
      return {
        deadLetters,
        ...pages.next(next),
        ...(previous === undefined ? {} : { previous: pages.write(previous) })
      }
    })
})

const get = operation("get", "GET", one, {
  scope: "dead:read",
  summary: "Show a dead letter, and how each attempt went",
  params: { tenant: Tenant, number },
  output: Detail,
  refusals: ["not-found"],
  showsWithin: (letter) => letter.endpoint,
  run: ({ params: { number, tenant } }) =>
    Effect.gen(function* () {
      const caller = yield* Caller
      const letter = yield* readingHistory(showDeadLetter(number, tenant))
      return maySeeAnswers(caller) ? letter : withoutPayloads(letter)
    })
})

const discard = operation("discard", "DELETE", one, {
  scope: "dead:write",
  summary: "Remove a dead letter for good",
  params: { tenant: Tenant, number },
  output: Schema.Struct({
    id: Schema.Int.annotateKey({ description: "The number of the dead letter." }),
    discarded: Schema.Literal(true).annotateKey({ description: "It is gone." })
  }).annotate({
    identifier: "DiscardedDeadLetter"
  }),
  refusals: ["not-found", "conflict"],
  run: ({ params: { number, tenant } }) =>
    Effect.gen(function* () {
      const { by } = yield* Caller
      const { plan, run } = yield* readingHistory(planDiscard({ id: [number], tenant }))
      if (plan.selected === 0) return yield* new DeadLettersNotFound({ ids: [number] })
      if (plan.waiting > 0)
        return yield* new Contradiction({
          message: `dead letter ${number} is being sent again: discard it when that has ended`
        })
      yield* run(by)
      return { id: number, discarded: true as const }
    })
})

/** Operations on dead letters. */
export const deadLetterOperations = operationGroup(
  "deadLetters",
  "Deliveries that ended without success.",
  list,
  get,
  discard
)
