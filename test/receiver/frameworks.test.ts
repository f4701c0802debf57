import { generateKeyPairSync, sign } from "node:crypto"
import { createServer, type RequestListener } from "node:http"
import { type AddressInfo, connect } from "node:net"
import express from "express"
import Fastify from "fastify"
import { Hono } from "hono"
import { afterAll, assert, describe, it } from "vitest"
import { discord } from "../../src/providers/discord.ts"
import { receiver } from "../../src/receiver/receiver.ts"
import { memoryStore } from "../../src/receiver/stores/memory.ts"
import { event, sender, signed } from "./sender.ts"

const closing: Array<() => void> = []
afterAll(() => {
  for (const close of closing) close()
})

const make = (bodyWithinMs = 10_000) => {
  const bodies: Array<string> = []
  const hooks = receiver({
    ...{ store: memoryStore(), sources: { shop: sender() }, maxBodyBytes: 10_000, bodyWithinMs },
    log: () => undefined
  })
  hooks.once("*", (_, { text }) => {
    bodies.push(text)
  })
  return { hooks, bodies }
}

const served = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener)
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const post = async (url: string, request: RequestInit) => {
  const response = await fetch(url, request)
  return { status: response.status, text: (await response.text()).trim() }
}

/** What a parser would change: an order of bytes that JSON.stringify does not write. */
const odd = signed("evt_1", '{ "type":"invoice.paid",  "data":{"total":1.0,"name":"\\u00fc"}}')

describe("A receiver behind", () => {
  it("any framework gives no content to a sender that wants none, also to its first question", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519")
    const hex = Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url").toString(
      "hex"
    )
    const hooks = receiver({
      ...{ store: memoryStore(), sources: { discord: discord({ secrets: [hex] }) } },
      log: () => undefined
    })
    hooks.once("*", () => undefined)
    const signedByDiscord = (body: string): RequestInit => {
      const at = `${Math.floor(Date.now() / 1_000)}`
      const signature = sign(null, Buffer.from(`${at}${body}`), privateKey).toString("hex")
      return {
        ...{ method: "POST", body },
        headers: {
          ...{ "content-type": "application/json", "x-signature-timestamp": at },
          "x-signature-ed25519": signature
        }
      }
    }
    const happened = { type: "APPLICATION_AUTHORIZED", timestamp: "2026-01-01T00:00:00", data: {} }
    const fastify = Fastify()
    await fastify.register(hooks.fastify("discord"), { prefix: "/in" })
    closing.push(() => void fastify.close())
    const hono = new Hono().post("/in", hooks.hono("discord"))
    const answers = {
      node: await served(hooks.node("discord")).then(
        (url) => (init: RequestInit) => fetch(url, init)
      ),
      express: await served(express().post("/in", hooks.express("discord"))).then(
        (url) => (init: RequestInit) => fetch(`${url}/in`, init)
      ),
      fastify: await fastify
        .listen({ port: 0, host: "127.0.0.1" })
        .then((url) => (init: RequestInit) => fetch(`${url}/in`, init)),
      hono: (init: RequestInit) => hono.request("http://shop.test/in", init),
      fetch: (init: RequestInit) => hooks.fetch("discord")(new Request("http://shop.test/", init))
    }
    for (const [name, ask] of Object.entries(answers))
      for (const body of [
        { version: 1, application_id: "1", type: 0 },
        { version: 1, application_id: "1", type: 1, event: { ...happened, data: { name } } }
      ]) {
        const answer = await ask(signedByDiscord(JSON.stringify(body)))
        const told = [name, answer.status, await answer.text()]
        assert.deepStrictEqual(told, [name, 204, ""])
      }
    assert.include(await hooks.metrics(), 'receipts_total{source="discord",outcome="done"} 5')
  })

  it("node:http takes the bytes as they came", async () => {
    const { bodies, hooks } = make()
    const url = await served(hooks.node("shop"))
    assert.deepStrictEqual(await post(url, odd), { status: 200, text: "done" })
    assert.deepStrictEqual(await post(url, odd), { status: 200, text: "duplicate" })
    assert.deepStrictEqual(bodies, [odd.body])
  })

  it("node:http answers 413 without reading on, and ends the connection", async () => {
    const { hooks } = make()
    const url = await served(hooks.node("shop"))
    const large = event("evt_1", "invoice.paid", { text: "x".repeat(20_000) })
    const response = await fetch(url, large)
    assert.strictEqual(response.status, 413)
    assert.strictEqual(response.headers.get("connection"), "close")
    const { body } = new Response(large.body)
    const chunked = await fetch(url, { ...large, body, duplex: "half" } as RequestInit)
    assert.strictEqual(chunked.status, 413)
    assert.strictEqual((await post(url, odd)).status, 200)
  })

  it("node:http gives up a body that does not arrive, and one that is broken off", async () => {
    const { bodies, hooks } = make(50)
    const url = await served(hooks.node("shop"))
    const head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nbegin"
    const slow = connect(Number(new URL(url).port), "127.0.0.1")
    slow.write(head)
    const answer = await new Promise<string>((resolve) =>
      slow.on("data", (data) => resolve(`${data}`))
    )
    assert.include(answer, "408")
    slow.destroy()
    const broken = connect(Number(new URL(url).port), "127.0.0.1")
    await new Promise((resolve) => broken.write(head, resolve))
    broken.destroy()
    assert.strictEqual((await post(url, odd)).status, 200)
    assert.lengthOf(bodies, 1)
  })

  it("Express takes the bytes, also those that raw() or verify have kept", async () => {
    const keep = (request: object, _: unknown, bytes: Buffer) => {
      Object.assign(request, { rawBody: bytes })
    }
    for (const use of [[], [express.raw({ type: "*/*" })], [express.json({ verify: keep })]]) {
      const { bodies, hooks } = make()
      const app = express()
      for (const middleware of use) app.use(middleware)
      app.post("/in/shop", hooks.express("shop"))
      const url = `${await served(app)}/in/shop`
      assert.deepStrictEqual(await post(url, odd), { status: 200, text: "done" })
      assert.deepStrictEqual(bodies, [odd.body])
    }
  })

  it("Express refuses what json() has parsed, and says which line mends it", async () => {
    const { bodies, hooks } = make()
    const app = express()
    app.use(express.json())
    app.post("/in/shop", hooks.express("shop"))
    const { status, text } = await post(`${await served(app)}/in/shop`, odd)
    assert.strictEqual(status, 500)
    assert.include(text, 'before express.json(): app.post("/in/shop", hooks.express("shop"))')
    assert.deepStrictEqual(bodies, [])
  })

  it("Fastify takes the bytes, and leaves the parsers of other routes", async () => {
    const { bodies, hooks } = make()
    const app = Fastify()
    closing.push(() => void app.close())
    app.post("/other", async (request) => (request.body as { readonly x: number }).x)
    await app.register(hooks.fastify("shop"), { prefix: "/in/shop" })
    const url = await app.listen({ port: 0, host: "127.0.0.1" })
    assert.deepStrictEqual(await post(`${url}/in/shop`, odd), { status: 200, text: "done" })
    assert.deepStrictEqual(bodies, [odd.body])
    const other = {
      method: "POST",
      body: '{"x":7}',
      headers: { "content-type": "application/json" }
    }
    assert.deepStrictEqual(await post(`${url}/other`, other), { status: 200, text: "7" })
  })

  it("Hono takes the bytes, and refuses what was read as text before", async () => {
    const { bodies, hooks } = make()
    const app = new Hono()
    app.use("/read/*", async ({ req }, next) => {
      await req.text()
      await next()
    })
    app.post("/in/shop", hooks.hono("shop"))
    app.post("/read/shop", hooks.hono("shop"))
    assert.strictEqual((await app.request("/in/shop", odd)).status, 200)
    const refused = await app.request("/read/shop", odd)
    assert.strictEqual(refused.status, 500)
    assert.include(await refused.text(), "do not call c.req.text()")
    assert.deepStrictEqual(bodies, [odd.body])
  })

  it("a Request takes the bytes, and refuses a body that was read", async () => {
    const { bodies, hooks } = make()
    const take = hooks.fetch("shop")
    const request = new Request("http://shop.test/in/shop", odd)
    assert.strictEqual((await take(request)).status, 200)
    const again = await take(request)
    assert.strictEqual(again.status, 500)
    assert.include(await again.text(), "request.clone()")
    assert.deepStrictEqual(bodies, [odd.body])
  })
})
