import type { ServerResponse } from "node:http"
import { type Answer, answer, ParsedBefore } from "./answers.ts"
import { type NodeRequest, type ReadBody, readFetchBody, readNodeBody } from "./body.ts"
import type { Load, Visit } from "./load.ts"
import type { CompiledSource } from "./settings.ts"

/* How each framework gives the bytes of a request, and takes an answer. */

/** What the frameworks ask of a receiver. */
export interface Entrance {
  readonly load: Load
  readonly bodyWithinMs: number
  readonly publicOrigin: string | undefined
  readonly take: (
    source: CompiledSource,
    request: {
      readonly method: string
      readonly url: string
      readonly headers: Readonly<Record<string, string | undefined>>
      readonly body: Uint8Array
    }
  ) => Promise<Answer>
  /** Counts an answer to a request that was not read. */
  readonly refused: (source: CompiledSource, answer: Answer, error?: string) => Answer
}

interface Arrived {
  readonly method: string
  readonly path: string
  readonly origin: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly read: (visit: Visit) => Promise<ReadBody>
}

/** Takes a request of any framework. Undefined: the sender has gone, and nobody waits for an answer. */
const arrive = async (
  { load, publicOrigin, refused, take }: Entrance,
  source: CompiledSource,
  { headers, method, origin, path, read }: Arrived
): Promise<Answer | undefined> => {
  const visit = load.enter(source.name)
  if (visit === undefined)
    return refused(source, answer("overloaded", "overloaded", { retryAfterMs: 2_000 }))
  try {
    const body = await read(visit)
    if (body.ok)
      return await take(source, {
        ...{ method, headers, body: body.body },
        url: `${publicOrigin ?? origin}${path}`
      })
    switch (body.problem) {
      case "broken-off":
        return undefined
      case "too-large":
        return refused(source, answer("too-large", `the limit is ${source.maxBodyBytes} bytes`))
      case "too-slow":
        return refused(source, answer("too-slow"))
      case "overloaded":
        return refused(source, answer("overloaded", "overloaded", { retryAfterMs: 2_000 }))
    }
  } catch (error) {
    if (!(error instanceof ParsedBefore)) throw error
    return refused(source, answer("parsed-before", error.message), error.message)
  } finally {
    visit.leave()
  }
}

const joined = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "string" || value === undefined ? value : value.join(", ")

const arrivedAtNode = (
  { bodyWithinMs }: Entrance,
  source: CompiledSource,
  request: NodeRequest,
  mend: string
): Arrived => ({
  method: request.method ?? "GET",
  // Express takes off what a router is mounted at; senders sign the whole.
  path: typeof request.originalUrl === "string" ? request.originalUrl : (request.url ?? "/"),
  origin: `${"encrypted" in request.socket ? "https" : "http"}://${request.headers.host ?? "localhost"}`,
  headers: Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, joined(value)])
  ),
  read: (visit) => readNodeBody(request, source.maxBodyBytes, bodyWithinMs, visit, mend)
})

const respond = (response: ServerResponse, given: Answer | undefined): void => {
  if (given === undefined || response.headersSent || response.destroyed) return
  // The rest of a body that was not read would be taken for the next request.
  const ends = given.status === 413 || given.status === 408 || given.outcome === "overloaded"
  response.writeHead(given.status, {
    ...given.headers,
    ...(given.status !== 204 && { "content-length": Buffer.byteLength(given.body) }),
    ...(ends && { connection: "close" })
  })
  response.end(given.body)
}

const mends = {
  node: "give the receiver the request before anything reads it",
  express: (name: string) =>
    `mount it before express.json(): app.post("/in/${name}", hooks.express("${name}")), or keep the bytes: express.json({ verify: (req, _res, bytes) => { req.rawBody = bytes } })`,
  fastify: (name: string) =>
    `register it as a plugin, which has parsers of its own: app.register(hooks.fastify("${name}"), { prefix: "/in/${name}" })`,
  hono: "do not call c.req.text(), json() or parseBody() before it, in no middleware either",
  fetch: "give the receiver request.clone(), or the request before anything reads it"
}

/** `http.createServer(hooks.node("stripe"))`. */
export const nodeHandler =
  (entrance: Entrance, source: CompiledSource, mend: string = mends.node) =>
  async (request: NodeRequest, response: ServerResponse): Promise<void> => {
    respond(
      response,
      await arrive(entrance, source, arrivedAtNode(entrance, source, request, mend))
    )
  }

/** `app.post("/in/stripe", hooks.express("stripe"))`. */
export const expressHandler = (entrance: Entrance, source: CompiledSource) =>
  nodeHandler(entrance, source, mends.express(source.name))

// biome-ignore lint/suspicious/noExplicitAny: the request and reply of the user's own Fastify
type Foreign = any

/** What is used of Fastify. */
export interface FastifyScope {
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    type: string,
    parser: (request: Foreign, payload: Foreign, done: (error: Error | null) => void) => void
  ): unknown
  route(route: {
    readonly method: Array<string>
    readonly url: string
    readonly handler: (request: Foreign, reply: Foreign) => Promise<unknown>
  }): unknown
}

/** `app.register(hooks.fastify("stripe"), { prefix: "/in/stripe" })`. */
export const fastifyPlugin =
  (entrance: Entrance, source: CompiledSource) =>
  async (scope: FastifyScope): Promise<void> => {
    // Within this scope only: the application's other routes keep their parsers.
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null))
    scope.route({
      method: ["GET", "POST"],
      url: "/",
      handler: async (request, reply) => {
        const given = await arrive(
          entrance,
          source,
          arrivedAtNode(entrance, source, request.raw, mends.fastify(source.name))
        )
        if (given === undefined) return reply.hijack()
        if (given.status === 413 || given.status === 408 || given.outcome === "overloaded")
          reply.header("connection", "close")
        return reply.code(given.status).headers(given.headers).send(given.body)
      }
    })
  }

const arrivedAsFetch = (
  { bodyWithinMs }: Entrance,
  source: CompiledSource,
  request: Request,
  mend: string
): Arrived => {
  const { origin, pathname, search } = new URL(request.url)
  return {
    method: request.method,
    path: `${pathname}${search}`,
    origin,
    headers: Object.fromEntries(request.headers),
    read: (visit) => readFetchBody(request, source.maxBodyBytes, bodyWithinMs, visit, mend)
  }
}

const responseOf = (given: Answer | undefined): Response =>
  given === undefined
    ? new Response(null, { status: 400 })
    : // 204 takes no body, not even an empty one.
      new Response(given.body === "" ? null : given.body, {
        status: given.status,
        headers: given.headers
      })

/** `Bun.serve({ fetch: hooks.fetch("stripe") })`, Next.js `export const POST = hooks.fetch("stripe")`, and others. */
export const fetchHandler =
  (entrance: Entrance, source: CompiledSource) =>
  async (request: Request): Promise<Response> =>
    responseOf(
      await arrive(entrance, source, arrivedAsFetch(entrance, source, request, mends.fetch))
    )

/** What is used of Hono's context. */
export interface HonoContext {
  readonly req: { readonly raw: Request; readonly bodyCache?: object }
}

/** `app.post("/in/stripe", hooks.hono("stripe"))`. */
export const honoHandler =
  (entrance: Entrance, source: CompiledSource) =>
  async ({ req }: HonoContext): Promise<Response> => {
    const arrived = arrivedAsFetch(entrance, source, req.raw, mends.hono)
    // Hono keeps what was read as text, and makes other bytes of it.
    const wasRead = Object.keys(req.bodyCache ?? {}).length > 0
    return responseOf(
      await arrive(entrance, source, {
        ...arrived,
        read: wasRead
          ? () =>
              Promise.reject(
                new ParsedBefore(
                  `the request's body was read before the receiver could: ${mends.hono}`
                )
              )
          : arrived.read
      })
    )
  }
