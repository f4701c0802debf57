/** A JSON Schema, as far as the API's document uses it. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Schema>
  readonly oneOf?: ReadonlyArray<Schema>
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly format?: string
  readonly description?: string
}

export type Schemas = Readonly<Record<string, Schema>>

/** Returns a text as a comment before what it is about; nothing for no text. */
export const comment = (text: string | undefined, indent = ""): string => {
  if (text === undefined || text === "") return ""
  const lines = text.replaceAll("*/", "*\\/").split("\n")
  return lines.length === 1
    ? `${indent}/** ${lines[0]} */\n`
    : `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`
}

/** Returns a name as a key of an object. */
export const key = (name: string): string => (/^\w+$/.test(name) ? name : JSON.stringify(name))

export const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf("/") + 1)

/** What differs where a type is for what is sent: fields may be undefined, and times a Date. */
type Direction = "sent" | "received"

const union = (types: ReadonlyArray<string>): string => [...new Set(types)].join(" | ")

const objectType = (schema: Schema, direction: Direction, indent: string): string => {
  const { additionalProperties, properties = {}, required = [] } = schema
  const names = Object.keys(properties)
  if (names.length === 0 && typeof additionalProperties === "object")
    return `{ readonly [name: string]: ${typeOf(additionalProperties, direction, indent)} }`
  if (names.length === 0)
    return additionalProperties === false ? "{}" : "{ readonly [name: string]: unknown }"
  return `{\n${fieldsOf(properties, required, direction, `${indent}  `)}${indent}}`
}

/** Returns the TypeScript of a schema. */
export const typeOf = (schema: Schema, direction: Direction, indent = ""): string => {
  const { $ref, enum: literals, format, items, type } = schema
  const choices = schema.anyOf ?? schema.oneOf
  if ($ref !== undefined) return nameOf($ref)
  if (literals !== undefined) return union(literals.map((one) => JSON.stringify(one)))
  if (choices !== undefined) return union(choices.map((one) => typeOf(one, direction, indent)))
  switch (type) {
    case "array":
      return `ReadonlyArray<${typeOf(items ?? {}, direction, indent)}>`
    case "boolean":
    case "null":
      return type
    case "integer":
    case "number":
      return "number"
    case "object":
      return objectType(schema, direction, indent)
    case "string":
      return format === "date-time" && direction === "sent" ? "string | Date" : "string"
    case undefined:
      return "unknown"
    default:
      throw new Error(`no TypeScript is known for a schema of the type ${type}`)
  }
}

/** Returns the fields of an object, a line each. */
export const fieldsOf = (
  properties: Readonly<Record<string, Schema>>,
  required: ReadonlyArray<string>,
  direction: Direction,
  indent: string
): string =>
  Object.entries(properties)
    .map(([name, schema]) => {
      const type = typeOf(schema, direction, indent)
      const rest = required.includes(name)
        ? `: ${type}`
        : `?: ${type}${direction === "sent" && type !== "unknown" ? " | undefined" : ""}`
      return `${comment(schema.description, indent)}${indent}readonly ${key(name)}${rest}\n`
    })
    .join("")

/** Returns the names of the schemas that a part of the document refers to, and those that they do. */
export const reachable = (schemas: Schemas, from: unknown): ReadonlySet<string> => {
  const found = new Set<string>()
  const follow = (part: unknown) => {
    for (const [, name = ""] of JSON.stringify(part ?? null).matchAll(
      /"#\/components\/schemas\/([^"]+)"/g
    ))
      if (!found.has(name)) {
        found.add(name)
        follow(schemas[name])
      }
  }
  follow(from)
  return found
}

/** Returns the declaration of a named schema. */
export const declarationOf = (name: string, schema: Schema, direction: Direction): string => {
  const type = typeOf(schema, direction)
  return `${comment(schema.description)}export ${
    type.startsWith("{\n") && schema.oneOf === undefined && schema.anyOf === undefined
      ? `interface ${name} ${type}`
      : `type ${name} = ${type}`
  }\n`
}
