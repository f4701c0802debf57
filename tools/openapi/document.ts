/* An OpenAPI document, as far as a console is driven by it. */
import type { Schema } from "./inputs.ts"

export interface Parameter {
  readonly name: string
  readonly in: "header" | "path" | "query"
  readonly required?: boolean
  readonly schema: Schema
}

interface Media {
  readonly schema: Schema
}

interface Answers {
  readonly content?: Readonly<Record<string, Media>>
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>
}

interface DocumentedOperation {
  readonly operationId: string
  readonly tags?: ReadonlyArray<string>
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: {
    readonly required?: boolean
    readonly content: Readonly<Record<string, Media>>
  }
  readonly responses: Readonly<Record<string, Answers>>
}

/** An OpenAPI document, as far as it is driven by. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
  readonly components: { readonly schemas: object }
}

/** An operation with its place in the document. */
export interface Operation extends DocumentedOperation {
  readonly method: string
  readonly path: string
}

export const isJson = (type: string): boolean => /[/+]json\b/.test(type)

/** Operations that remove what others are asked about come last. */
const isLast = ({ method, operationId }: Operation): boolean =>
  method === "delete" || operationId === "endpoints.disable"

/** Returns the operations of a document. */
export const operationsOf = ({ paths }: Document): ReadonlyArray<Operation> =>
  Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path }))
    )
    .toSorted((one, other) => Number(isLast(one)) - Number(isLast(other)))
