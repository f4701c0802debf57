/*
 * What tenants do to a console that want all of it for themselves. Each attack is one request, which
 * is made again and again.
 */
import type { Socket } from "node:net"
import { connect } from "node:net"
import { Agent } from "undici"

/** A tenant that attacks. */
export interface Attacker {
  readonly tenant: string
  readonly token: string
  /** Its own address: limits by address are not to hit its neighbour. */
  readonly localAddress: string
  /** An address that takes connections and never answers. */
  readonly silent: string
}

/** The answer's status, or what happened instead. */
export type Answered = number | "closed" | "no answer" | "refused"

export interface Attack {
  readonly name: string
  /** How often at the same time, for each attacker. */
  readonly atOnce: number
  /** Pause after an answer, ms. */
  readonly pause: number
  readonly make: (number: number) => Promise<Answered>
}

/** How long a socket or a stream is kept open, ms. */
const heldMs = 20_000
/** How long an attacker waits for an answer, ms. */
const answerWithinMs = 30_000

const mib = 1024 * 1024

/** 4,000 fields that there are not. */
const unknownKeys = `{${Array.from({ length: 4_000 }, (_, n) => `"unknown_field_${n}":${n}`).join(",")}}`
/** As many numbers as 16 MiB hold. */
const numbers = Buffer.from(`[${"1.0,".repeat(4 * mib - 2)}1.0]`).subarray(0, 16 * mib)
const manyEvents = Buffer.from(
  `[${Array.from({ length: 250_000 }, () => '{"type":"a.b","data":{"x":[1.0,2.0]}}').join(",")}]`
).subarray(0, 16 * mib)

/** All attacks of one tenant on a console. */
export const attacksOf = (
  address: string,
  { localAddress, silent, tenant, token }: Attacker,
  askNats: (subject: string, body: string) => Promise<Answered>
): ReadonlyArray<Attack> => {
  const agent = new Agent({ localAddress, pipelining: 1, connections: 1_024 })
  const root = `/v1/tenants/${tenant}`
  const { hostname, port } = new URL(address)
  const bearer = `Bearer ${token}`

  const ask = async (method: string, path: string, body?: string | Buffer): Promise<Answered> => {
    try {
      const answer = await agent.request({
        origin: address,
        path: `${root}${path}`,
        method: method as "GET",
        headers: { authorization: bearer, "content-type": "application/json" },
        body: body ?? null,
        signal: AbortSignal.timeout(answerWithinMs)
      })
      await answer.body.dump({ limit: 64 * mib })
      return answer.statusCode
    } catch (error) {
      const { code, name } = error as { code?: string; name?: string }
      if (code === "ECONNREFUSED") return "refused"
      return name === "TimeoutError" ? "no answer" : "closed"
    }
  }

  /** Opens a socket, says something and keeps it open. */
  const hold = (said: string) =>
    new Promise<Answered>((resolve) => {
      const socket: Socket = connect({ host: hostname, port: Number(port), localAddress })
      const end = (answered: Answered) => {
        socket.destroy()
        resolve(answered)
      }
      socket.setTimeout(heldMs, () => end("no answer"))
      socket.on("connect", () => socket.write(said))
      socket.on("data", (data) => end(Number(/ (\d{3}) /.exec(data.toString("latin1"))?.[1] ?? 0)))
      socket.on("error", () => end("closed"))
      socket.on("close", () => end("closed"))
    })

  /** Follows what happens for a while. */
  const follow = async (): Promise<Answered> => {
    try {
      const answer = await agent.request({
        origin: address,
        path: `${root}/live`,
        method: "GET",
        headers: { authorization: bearer },
        headersTimeout: answerWithinMs,
        signal: AbortSignal.timeout(heldMs)
      })
      await answer.body.dump({ limit: mib }).catch(() => undefined)
      return answer.statusCode
    } catch (error) {
      return (error as { name?: string }).name === "TimeoutError" ? "no answer" : "closed"
    }
  }

  const endpoint = (id: number, changes: object = {}) =>
    ask(
      "PUT",
      `/endpoints/e${id}`,
      JSON.stringify({ url: silent, types: [`slow.e${id}`], timeout: "5 minutes", ...changes })
    )

  return [
    {
      ...{ name: "unknown fields", atOnce: 2, pause: 100 },
      make: () => ask("PUT", "/endpoints/unknown", unknownKeys)
    },
    {
      ...{ name: "declared bodies", atOnce: 32, pause: 100 },
      make: () =>
        hold(
          `POST ${root}/events HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: ${bearer}\r\nContent-Type: application/json\r\nContent-Length: ${16 * mib}\r\n\r\n[`
        )
    },
    {
      ...{ name: "half requests", atOnce: 280, pause: 500 },
      make: () => hold(`GET ${root}/alerts HTTP/1.1\r\nHost: ${hostname}:${port}\r\nX-`)
    },
    { ...{ name: "live streams", atOnce: 280, pause: 500 }, make: follow },
    {
      ...{ name: "large batches", atOnce: 2, pause: 100 },
      make: (number) => ask("POST", "/events", number % 2 === 0 ? numbers : manyEvents)
    },
    {
      ...{ name: "test events", atOnce: 48, pause: 200 },
      make: () => ask("POST", "/endpoints/e0/test", "{}")
    },
    {
      ...{ name: "silent receivers", atOnce: 4, pause: 250 },
      make: (number) => ask("POST", "/events", `{"type":"slow.e${number % 10}","data":1}`)
    },
    {
      ...{ name: "jobs", atOnce: 4, pause: 200 },
      make: (number) =>
        number % 2 === 0
          ? ask(
              "POST",
              "/replays",
              `{"endpoint":"e${number % 10}","types":[">"],"id":"r${number}"}`
            )
          : ask("POST", "/redeliveries", '{"all":true}')
    },
    {
      ...{ name: "unknown events", atOnce: 25, pause: 200 },
      make: (number) => ask("GET", `/events/nothing-${number}`)
    },
    {
      ...{ name: "log queries", atOnce: 16, pause: 200 },
      make: (number) =>
        ask("GET", `/deliveries?type=inv.${number}*&state=delivered&since=2020-01-01T00:00:00Z`)
    },
    {
      ...{ name: "types", atOnce: 1, pause: 500 },
      make: (number) =>
        ask(
          "POST",
          "/events",
          JSON.stringify(
            Array.from({ length: 100 }, (_, n) => ({ type: `inv.t${number * 100 + n}`, data: n }))
          )
        )
    },
    {
      ...{ name: "NATS requests", atOnce: 64, pause: 100 },
      make: (number) =>
        number % 2 === 0
          ? askNats(`petrel.api.v1.${tenant}.endpoints.list`, "{}")
          : askNats(`petrel.api.v1.${tenant}.deliveries.event`, `{"event":"nothing-${number}"}`)
    },
    {
      ...{ name: "tokens", atOnce: 4, pause: 100 },
      make: () => ask("POST", "/tokens", '{"scopes":["deliveries:read"]}')
    },
    { ...{ name: "endpoints", atOnce: 8, pause: 50 }, make: (number) => endpoint(number) }
  ]
}
