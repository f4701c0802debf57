import { Schema, type SchemaAST } from "effect"

/**
 * Returns a check that refuses nothing, and puts into the OpenAPI document what its schema cannot
 * tell: a text that a later step reads, or what holds between fields. It must allow all that is taken.
 */
export const documentedAs = (says: Readonly<Record<string, unknown>>): SchemaAST.Filter<unknown> =>
  Schema.makeFilter(() => undefined, { toJsonSchema: () => says })
