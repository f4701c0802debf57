import type { Operation } from "../operations/operation.ts"
import { operationGroups } from "../operations/operations.ts"
import { publishing } from "./publishing.ts"

/** All operations, in the order of the document. */
export const groups = [publishing, ...operationGroups] as const

/** An operation, as it is asked for. */
interface ListedOperation {
  /** Its `operationId`: `endpoints.get`. */
  readonly id: string
  /** With `{name}` for what varies. */
  readonly path: string
  readonly operation: Operation<unknown>
}

/** All operations, by how they are asked for. */
export const listedOperations: ReadonlyArray<ListedOperation> = groups.flatMap(
  ({ name, operations }) =>
    operations.map((operation) => ({
      id: `${name}.${operation.name}`,
      path: operation.path.replaceAll(/:(\w+)/g, "{$1}"),
      operation
    }))
)
