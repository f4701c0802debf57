import { Array as Arr, Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { Operation, OperationGroup, ServicesOf } from "../operations/operation.ts"
import { answerWith } from "./answer.ts"
import { Api } from "./api.ts"
import { answeringProblems } from "./failures.ts"
import { groups } from "./groups.ts"

type Needed = ServicesOf<(typeof groups)[number]["operations"][number]>

/** Carries out an operation for a request, which the API has decoded by the operation's schemas. */
const handlerOf =
  ({ refusals, run }: Operation<Needed>) =>
  (request: object) =>
    answeringProblems(refusals, Effect.flatMap(run(request as never), answerWith))

const handlersOf = ({ name, operations }: OperationGroup<Operation<Needed>>) =>
  HttpApiBuilder.group(Api, name, (handlers) => {
    for (const operation of operations)
      if (operation.isRaw === true) handlers.handleRaw(operation.name, handlerOf(operation))
    const decoded = operations.filter(({ isRaw }) => isRaw !== true)
    return handlers.handleAll(
      Object.fromEntries(decoded.map((operation) => [operation.name, handlerOf(operation)]))
    )
  })

/** Carries out all operations of the API. */
export const handlers = Layer.mergeAll(...Arr.map(groups, handlersOf))
