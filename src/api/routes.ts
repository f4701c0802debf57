import { Array as Arr, Effect, Layer, Option, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Caller, NotAllowed } from "../operations/caller.ts"
import type { Operation, OperationGroup, ServicesOf } from "../operations/operation.ts"
import { runOnce } from "../operations/run-once.ts"
import { answerWith } from "./answer.ts"
import { Api } from "./api.ts"
import { answeringProblems } from "./failures.ts"
import { groups } from "./groups.ts"

/** What the API has decoded of a request. */
interface Decoded {
  readonly headers?: { readonly "idempotency-key"?: string }
  readonly params?: unknown
  readonly payload?: unknown
  readonly query?: unknown
}

type Needed = ServicesOf<(typeof groups)[number]["operations"][number]>

/** Returns the schema of what an operation answers, as JSON. */
const answered = ({ output }: Operation<Needed>) =>
  Schema.toCodecJson(Schema.Union(Arr.ensure(output)) as unknown as Schema.Codec<unknown>)

const notOfEndpoint = (endpoint: string) =>
  new NotAllowed({
    message: `this session is for the endpoint ${endpoint} only`
  })

/** Carries out an operation if it is about the endpoint of a caller for whom there is one only. */
const withinEndpoint = (
  { showsWithin, within }: Operation<Needed>,
  request: Decoded,
  running: Effect.Effect<unknown, unknown, Needed>
) =>
  Effect.flatMap(Effect.serviceOption(Caller), (caller) => {
    const own = Option.isSome(caller) ? caller.value.endpoint : undefined
    if (own === undefined) return running
    if (showsWithin !== undefined)
      return Effect.filterOrFail(
        running,
        (output) => showsWithin(output as never) === own,
        () => notOfEndpoint(own)
      )
    return within?.(request as never) === own ? running : Effect.fail(notOfEndpoint(own))
  })

/** Carries out an operation for a request, which the API has decoded by the operation's schemas. */
const handlerOf = (id: string, operation: Operation<Needed>) => {
  const { once, refusals, run } = operation
  const schema = answered(operation)
  return (request: Decoded) => {
    const { headers: { "idempotency-key": key } = {}, params, payload, query } = request
    const running = withinEndpoint(operation, request, run(request as never))
    const answering =
      once === undefined || key === undefined
        ? running
        : runOnce({ id, key, asked: { params, payload, query }, kept: once, schema }, running)
    return answeringProblems(refusals, Effect.flatMap(answering, answerWith))
  }
}

const handlersOf = ({ name, operations }: OperationGroup<Operation<Needed>>) =>
  HttpApiBuilder.group(Api, name, (handlers) => {
    for (const operation of operations)
      if (operation.isRaw === true)
        handlers.handleRaw(operation.name, handlerOf(`${name}.${operation.name}`, operation))
    const decoded = operations.filter(({ isRaw }) => isRaw !== true)
    return handlers.handleAll(
      Object.fromEntries(
        decoded.map((operation) => [
          operation.name,
          handlerOf(`${name}.${operation.name}`, operation)
        ])
      )
    )
  })

/** Carries out all operations of the API. */
export const handlers = Layer.mergeAll(...Arr.map(groups, handlersOf))
