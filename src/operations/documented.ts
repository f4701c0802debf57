import { Schema, SchemaAST } from "effect"

/** The same fields, of which those that may be undefined may only be absent: JSON has no undefined. */
export type JsonFields<Fields extends Schema.Struct.Fields> = {
  readonly [Name in keyof Fields]: Fields[Name] extends Schema.optional<infer Inner>
    ? Schema.optionalKey<Inner>
    : Fields[Name]
}

/** What the document says of a schema. */
export interface Documentation<Fields extends Schema.Struct.Fields> {
  /** Its name in the document. */
  readonly identifier: string
  readonly description?: string
  /** What each field means, with its unit. */
  readonly fields?: { readonly [Name in keyof Fields]?: string }
  readonly examples?: ReadonlyArray<unknown>
}

/** Returns the schema of a value that is there; undefined for a field that must be there. */
const requiredPart = (field: Schema.Constraint): Schema.Constraint | undefined => {
  if (!("schema" in field) || !Schema.isSchema(field.schema)) return undefined
  const union = field.schema
  if (!("members" in union) || !Array.isArray(union.members)) return undefined
  const [present, absent] = union.members
  return Schema.isSchema(present) &&
    Schema.isSchema(absent) &&
    SchemaAST.isUndefined(absent.ast) &&
    union.members.length === 2
    ? present
    : undefined
}

/**
 * Returns a struct as the API takes or gives it: named and described, and with fields that may be
 * absent but not null.
 */
export const documented = <Fields extends Schema.Struct.Fields>(
  { fields }: Schema.Struct<Fields>,
  documentation: Documentation<Fields>
): Schema.Struct<JsonFields<Fields>> => {
  const texts: ReadonlyMap<string, unknown> = new Map(Object.entries(documentation.fields ?? {}))
  const described = Object.entries(fields).map(([name, field]) => {
    const present = requiredPart(field)
    const one = present === undefined ? field : Schema.optionalKey(present)
    const description = texts.get(name)
    return [
      name,
      typeof description === "string" ? annotated(one as Schema.Top, { description }) : one
    ] as const
  })
  const { description, examples, identifier } = documentation
  return Schema.Struct(Object.fromEntries(described)).annotate({
    identifier,
    ...(description === undefined ? {} : { description }),
    ...(examples === undefined ? {} : { examples: examples as never })
  }) as unknown as Schema.Struct<JsonFields<Fields>>
}

const annotated = (schema: Schema.Top, annotations: { readonly description: string }) =>
  schema.annotateKey(annotations)
