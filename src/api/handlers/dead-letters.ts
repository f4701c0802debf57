import { Effect, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { pageDeadLetters } from "../../operations/dead-letters/dead-letter-page.ts"
import type { DeadLetterDetail } from "../../operations/dead-letters/dead-letter-queries.ts"
import { showDeadLetter } from "../../operations/dead-letters/dead-letter-queries.ts"
import { DeadLettersNotFound } from "../../operations/dead-letters/dead-letter-selection.ts"
import { planDiscard } from "../../operations/dead-letters/discard-dead-letters.ts"
import { allTenants } from "../../operations/tokens/token.ts"
import { Caller } from "../access.ts"
import { makeCursor } from "../cursor.ts"
import { Api } from "../definition/api.ts"
import { defaultLimit, timeOf } from "../definition/common.ts"
import { acting, listing, reading } from "../failures.ts"
import { Conflict } from "../problems.ts"
import { invalidRequest } from "../validation.ts"

const cursor = makeCursor("dead-letters", Schema.Int)

const withoutBody = ({ body: _, bodyBase64: __, ...rest }: DeadLetterDetail): DeadLetterDetail =>
  rest

/** Carries out the routes of dead letters. */
export const deadLettersHandlers = HttpApiBuilder.group(Api, "deadLetters", (handlers) =>
  handlers.handleAll({
    list: ({ params, query }) =>
      listing(
        Effect.gen(function* () {
          const { endpoint, limit = defaultLimit, reason, since, status, until } = query
          const tenant = params.tenant === allTenants ? undefined : params.tenant
          if (endpoint !== undefined && tenant === undefined)
            return yield* invalidRequest([
              { field: "endpoint", message: "needs a tenant in the path, and not *" }
            ])
          const after = yield* cursor.read(query.cursor)
          const { deadLetters, next } = yield* pageDeadLetters(
            {
              tenant,
              ...(endpoint === undefined || tenant === undefined
                ? {}
                : { endpoint: { tenant, id: endpoint } }),
              reason,
              status,
              ...(since === undefined ? {} : { since: timeOf(since) }),
              ...(until === undefined ? {} : { until: timeOf(until) })
            },
            after,
            limit
          )
          return { deadLetters, ...(next === undefined ? {} : { next: cursor.write(next) }) }
        })
      ),
    get: ({ params: { number, tenant } }) =>
      reading(
        Effect.gen(function* () {
          const { scopes } = yield* Caller
          const letter = yield* showDeadLetter(number)
          if (letter.tenant !== tenant) return yield* new DeadLettersNotFound({ ids: [number] })
          return scopes.includes("payloads:read") ? letter : withoutBody(letter)
        })
      ),
    discard: ({ params: { number, tenant } }) =>
      acting(
        Effect.gen(function* () {
          const { by } = yield* Caller
          const { plan, run } = yield* planDiscard({ id: [number], tenant })
          if (plan.selected === 0) return yield* new DeadLettersNotFound({ ids: [number] })
          if (plan.waiting > 0)
            return yield* new Conflict({
              detail: `dead letter ${number} is being sent again: discard it when that has ended`
            })
          yield* run(by)
          return { id: number, discarded: true as const }
        })
      )
  })
)
