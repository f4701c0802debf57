import { assert, describe, it } from "@effect/vitest"
import type { HandshakeAnswer, Provider } from "../../src/providers/provider.ts"
import { hmac, json, request, signedRequest } from "./sample.ts"
import { samples } from "./samples.ts"

const at = 1_795_000_000_000

const sampleOf = (name: string) =>
  samples.find((sample) => sample.name === name) ?? assert.fail(`no sample of ${name}`)

/** Asks a provider with a body that its first secret has signed, or its second. */
const asked = async (name: string, body: unknown, by: 0 | 1 = 0) => {
  const sample = { ...sampleOf(name), body: json(body) }
  const signed = await signedRequest(sample, at, sample.keys[by])
  return sample.make([sample.keys[0].verifying]).handshake?.(signed, at)
}

const opened = (name: string, query: string, method = "GET"): HandshakeAnswer | undefined => {
  const { keys, make } = sampleOf(name)
  const provider: Provider = make([keys[0].verifying])
  return provider.handshake?.(request({}, Buffer.alloc(0), { method, url: `/in?${query}` }), at)
}

describe("handshakes", () => {
  it("of Slack repeat the challenge of a signed request, and of no other", async () => {
    const challenge = { token: "t", challenge: "3eZbrw1aBm2rZgRNFdxV", type: "url_verification" }
    assert.deepStrictEqual(await asked("slack", challenge), {
      status: 200,
      headers: { "content-type": "text/plain" },
      body: "3eZbrw1aBm2rZgRNFdxV"
    })
    assert.isUndefined(await asked("slack", challenge, 1))
    assert.isUndefined(await asked("slack", { ...challenge, type: "event_callback" }))
  })

  it("of Zoom sign the token with the secret that the request was signed with", async () => {
    const validation = {
      event: "endpoint.url_validation",
      payload: { plainToken: "qgg8vlvZRS6UYooatFL8Aw" }
    }
    const answer = await asked("zoom", validation)
    const encryptedToken = hmac("sealing-wax-1", "qgg8vlvZRS6UYooatFL8Aw").digest("hex")
    assert.strictEqual(answer?.status, 200)
    assert.deepStrictEqual(JSON.parse(answer?.body ?? ""), {
      plainToken: "qgg8vlvZRS6UYooatFL8Aw",
      encryptedToken
    })
    assert.isUndefined(await asked("zoom", validation, 1))
    assert.isUndefined(await asked("zoom", { ...validation, event: "meeting.started" }))
  })

  it("of Discord answer both kinds of ping, if they are signed", async () => {
    const event = { version: 1, application_id: "1", type: 0 }
    assert.strictEqual((await asked("discord", event))?.status, 204)
    assert.strictEqual((await asked("discord", event))?.body, "")
    const interaction = { id: "2", application_id: "1", type: 1, token: "t" }
    assert.deepInclude(await asked("discord", interaction), { status: 200, body: '{"type":1}' })
    assert.isUndefined(await asked("discord", interaction, 1))
    assert.isUndefined(await asked("discord", { ...event, type: 1, event: { type: "a" } }))
    assert.isUndefined(await asked("discord", { ...interaction, type: 2 }))
  })

  it("of Meta repeat the challenge to whoever knows the verify token", () => {
    const query = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token="
    assert.deepInclude(opened("meta", `${query}open%20sesame`), {
      status: 200,
      body: "1158201444"
    })
    assert.strictEqual(opened("meta", `${query}open+sesame`)?.headers["content-type"], "text/plain")
    assert.isUndefined(opened("meta", `${query}open%20sesam`))
    assert.isUndefined(opened("meta", query))
    assert.isUndefined(opened("meta", `${query}open%20sesame`, "POST"))
    const long = `hub.mode=subscribe&hub.verify_token=open+sesame&hub.challenge=${"1".repeat(9_999)}`
    assert.isUndefined(opened("meta", long))
  })

  it("of X sign the token", () => {
    const made = hmac("sealing-wax-1", "MTc5NTAw+/=_-").digest("base64")
    const answer = opened("x", "crc_token=MTc5NTAw%2B%2F%3D_-&nonce=1")
    assert.deepStrictEqual(JSON.parse(answer?.body ?? ""), { response_token: `sha256=${made}` })
    assert.isUndefined(opened("x", "crc_token=MTc5NTAw", "POST"))
    assert.isUndefined(opened("x", "nonce=1"))
  })

  it("of X sign no token that could be a body: whoever asks could send it", () => {
    for (const body of ['{"for_user_id":"1"}', "[]", ' {"a":1}', "a b", "a".repeat(201), ""])
      assert.isUndefined(opened("x", `crc_token=${encodeURIComponent(body)}`), body)
  })

  it("are of no other provider, and of no ordinary request", async () => {
    for (const sample of samples) {
      const provider = sample.make([sample.keys[0].verifying])
      const usual = await signedRequest(sample, at, sample.keys[0])
      assert.isUndefined(provider.handshake?.(usual, at), sample.name)
    }
  })
})
