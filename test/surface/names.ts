interface Schema {
  readonly $ref?: string
  readonly allOf?: ReadonlyArray<Schema>
  readonly anyOf?: ReadonlyArray<Schema>
  readonly oneOf?: ReadonlyArray<Schema>
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}

interface Operation {
  readonly parameters?: ReadonlyArray<{ readonly in: string; readonly name: string }>
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}

/** The parts of an OpenAPI document that names are read from. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Names by what has them: "endpoint add" and its flags, "GET /v1/events answer" and its fields. */
export type Names = Readonly<Record<string, ReadonlyArray<string>>>

const deepest = 6
const methods = new Set(["get", "put", "post", "patch", "delete"])

const flagsIn = (block: string): ReadonlyArray<string> =>
  [...block.matchAll(/^ {2}(--[a-z0-9-]+)/gm)].map(([, flag = ""]) => flag)

/**
 * Returns the flags of each command, from the text of docs/reference/commands.md. Those that every
 * command has are under "every command".
 */
export const namesOfCommands = (reference: string): Names => {
  const [head = "", ...sections] = reference.split(/^## petrel /m)
  const inherited = head
    .split(/\n+(?=[A-Z])/)
    .filter((block) => /^(INHERITED|GLOBAL) FLAGS\n/.test(block))
  return Object.fromEntries([
    ["every command", inherited.flatMap(flagsIn)],
    ...sections.map((section) => {
      const [name = ""] = section.split("\n", 1)
      const blocks = section.split(/\n+(?=[A-Z])/).filter((block) => block.startsWith("FLAGS\n"))
      return [name, blocks.flatMap(flagsIn)]
    })
  ])
}

const fieldsOf = (document: Document, ...schemas: ReadonlyArray<Schema>): ReadonlyArray<string> => {
  const found = new Set<string>()
  const resolve = ({ $ref }: Schema): Schema =>
    ($ref ?? "")
      .split("/")
      .slice(1)
      .reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document) as Schema
  const visit = (given: Schema | undefined, path: string, depth: number): void => {
    if (given === undefined || depth > deepest) return
    const schema = given.$ref === undefined ? given : resolve(given)
    for (const part of [
      ...(schema.allOf ?? []),
      ...(schema.anyOf ?? []),
      ...(schema.oneOf ?? [])
    ]) {
      visit(part, path, depth + 1)
    }
    for (const [name, inner] of Object.entries(schema.properties ?? {})) {
      found.add(`${path}${name}`)
      visit(inner, `${path}${name}.`, depth + 1)
    }
    visit(schema.items, path, depth + 1)
    if (typeof schema.additionalProperties === "object") {
      visit(schema.additionalProperties, `${path}*.`, depth + 1)
    }
  }
  for (const schema of schemas) visit(schema, "", 0)
  return [...found]
}

const schemasOf = ({ content = {} }: Content): ReadonlyArray<Schema> =>
  Object.values(content).flatMap(({ schema }) => (schema === undefined ? [] : [schema]))

/**
 * Returns the parameters of each route, and the fields of its body and of its answers with 2xx,
 * from an OpenAPI document. Parameters in the path have no names here: a client does not write them.
 */
export const namesOfRoutes = (document: Document): Names =>
  Object.fromEntries(
    Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item)
        .filter(([method]) => methods.has(method))
        .flatMap(([method, { parameters = [], requestBody = {}, responses }]) => {
          const route = `${method.toUpperCase()} ${path.replaceAll(/\{[^}]*\}/g, "{}")}`
          const answers = Object.entries(responses).filter(([status]) => status.startsWith("2"))
          const query = parameters.filter((parameter) => parameter.in !== "path")
          return [
            [`${route} takes`, query.map((parameter) => `${parameter.in}:${parameter.name}`)],
            [`${route} body`, fieldsOf(document, ...schemasOf(requestBody))],
            [
              `${route} answer`,
              fieldsOf(document, ...answers.flatMap(([, content]) => schemasOf(content)))
            ]
          ] as ReadonlyArray<[string, ReadonlyArray<string>]>
        })
    )
  )
