import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent } from "undici"
import { momentAt } from "../../src/providers/body.ts"
import type { Asked, Listed, Listing } from "../../src/providers/listings/listing.ts"
import { listings } from "../../src/providers/listings/listings.ts"
import { provider as providerOf, providers } from "../../src/providers/providers.ts"
import { makeApi } from "../../src/reconcile/api.ts"
import { wantedTypes } from "../../src/reconcile/reconcile.ts"
import { listingApi } from "../../src/reconcile/walk.ts"
import { providerApi } from "../kit/provider-api.ts"
import { providerLists, timesBefore } from "../kit/provider-lists.ts"

const now = Math.floor(Date.now() / 1_000) * 1_000

/** Walks through the list of a provider that has `count` events. */
const walked = Effect.fnUntraced(function* (
  name: string,
  count: number,
  { perPage = 2, since = 0 }: { readonly perPage?: number; readonly since?: number } = {}
) {
  const known = providerLists[name]
  const listing = listings.get(name)
  if (known === undefined || listing === undefined) return yield* Effect.die(`no list of ${name}`)
  const times = timesBefore(now, count)
  const server = yield* providerApi(known.api(times, perPage))
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent()),
    (made) => Effect.promise(() => made.destroy())
  )
  const { title } = listing
  const api = makeApi({ title, url: server.url, agent: client, perSecond: 1_000, firstPauseMs: 1 })
  const asked: Asked = { since, until: now, webhook: known.webhook }
  const list = listingApi(listing, asked, api, known.key)
  const found: Array<Listed> = []
  const walk = list.walk((page) =>
    Effect.sync(() => {
      found.push(...page)
    })
  )
  return { asked, found, known, list, listing, server, times, walk }
})

const names = [...listings.keys()]

describe.each(names)("the list of %s", (name) => {
  it.live("is read page by page to its end, each event once, with its time", () =>
    Effect.gen(function* () {
      const { found, known, times, walk } = yield* walked(name, 5)
      yield* walk
      const newestFirst = found.toSorted((a, b) => (b.at ?? 0) - (a.at ?? 0))
      const said = newestFirst.map(({ at, id, type }) => `${id} ${type} ${at}`)
      assert.deepStrictEqual(
        said,
        times.map((at, place) => `${known.event(place, at).join(" ")} ${at}`)
      )
    }).pipe(Effect.scoped)
  )

  it.live("has none where the provider has none", () =>
    Effect.gen(function* () {
      const { found, walk } = yield* walked(name, 0)
      yield* walk
      assert.deepStrictEqual(found, [])
    }).pipe(Effect.scoped)
  )

  it.live("gives what is missing as its webhook would have brought it", () =>
    Effect.gen(function* () {
      const { found, known, list, walk } = yield* walked(name, 1)
      yield* walk
      const [listed] = found
      if (listed === undefined) return assert.fail("nothing is listed")
      const obtained = yield* list.obtain(listed)
      assert.strictEqual(obtained.as, known.comes)
      if (obtained.as !== "carried") return
      const { read } = providerOf(name, known.settings)
      const reading = read({ method: "POST", url: "", ...obtained.carried })
      if (!reading.ok) return assert.fail(reading.text)
      assert.deepStrictEqual(
        reading.events.map(({ id, type }) => `${id} ${type}`),
        [known.event(0, listed.at).join(" ")]
      )
    }).pipe(Effect.scoped)
  )

  it.live("is asked for no further than the time that is asked for", () =>
    Effect.gen(function* () {
      const { found, listing, server, walk } = yield* walked(name, 300, {
        perPage: 20,
        since: now - 65 * 60_000
      })
      yield* walk
      // Lists may be somewhat out of order. GitLab takes no time, and its list says none of what it
      // got no answer for.
      assert.isBelow(server.requests.length, name === "gitlab" ? 17 : 9, listing.title)
      assert.isAtLeast(found.length, 6)
    }).pipe(Effect.scoped)
  )

  it.live("is refused with other credentials, in words without them", () =>
    Effect.gen(function* () {
      const { server, walk } = yield* walked(name, 1)
      const { key = "" } = providerLists[name] ?? {}
      server.answer(() => ({ status: 401, json: { message: "no" } }))
      const { message } = yield* Effect.flip(walk)
      assert.match(message, /refuses the credentials, or what they may read \(401: no\)/)
      assert.notInclude(message, key)
    }).pipe(Effect.scoped)
  )

  it.live("is told from an answer of another form", () =>
    Effect.gen(function* () {
      const { server, walk } = yield* walked(name, 1)
      const token = { access_token: "A21AA" }
      const forms = [
        "<html>",
        7,
        "null",
        { data: 1, events: "x", items: {}, deliveries: 1, errors: [] }
      ]
      for (const json of forms) {
        server.answer(({ path }) => ({ json: path === "/v1/oauth2/token" ? token : json }))
        const { message } = yield* Effect.flip(walk)
        assert.match(message, /answers in another form than it documents/)
      }
    }).pipe(Effect.scoped)
  )

  it("is of a provider, and says what it needs", () => {
    const listing = listings.get(name) as Listing
    assert.isDefined(providers.get(name))
    assert.match(listing.webhook.example, listing.webhook.form)
    assert.notMatch("../../x?y=1", listing.webhook.form)
  })
})

describe("a list that has more, and does not say where", () => {
  it.live.each([
    ["stripe", { data: [], has_more: true }],
    ["paddle", { data: [], meta: { pagination: { has_more: true } } }],
    ["standard-webhooks", { data: [], done: false, iterator: null }]
  ] as const)("is not taken for whole: %s", ([name, json]) =>
    Effect.gen(function* () {
      const { server, walk } = yield* walked(name, 1)
      server.answer(() => ({ json }))
      const { message } = yield* Effect.flip(walk)
      assert.match(message, /answers in another form than it documents/)
    }).pipe(Effect.scoped)
  )
})

describe("what a provider lists", () => {
  it.each(names)("is an event that may come again for as long: %s", (name) => {
    const listing = listings.get(name)
    // A state that is listed comes under an id of its own, and never by a webhook.
    if (listing === undefined || listing.states !== undefined) return
    assert.isAtLeast(providers.get(name)?.repeatsForMs ?? 0, listing.keepsMs)
  })

  it("has its time in UTC where it names no zone, whatever the zone of this machine", () => {
    const zone = process.env.TZ
    try {
      process.env.TZ = "America/New_York"
      const at = (created_at: string) => momentAt({ created_at }, "s", "created_at")
      const noon = Date.UTC(2026, 10, 26, 12)
      assert.strictEqual(new Date(noon).getHours(), 7)
      assert.strictEqual(at("2026-11-26T12:00:00"), noon)
      assert.strictEqual(at("2026-11-26 12:00:00.000"), noon)
      assert.strictEqual(at("2026-11-26T12:00:00Z"), noon)
      assert.strictEqual(at("2026-11-26T14:00:00+02:00"), noon)
      assert.isUndefined(at("today"))
    } finally {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    }
  })
})

describe("a list", () => {
  it.live("tells which types its webhook gets", () =>
    Effect.gen(function* () {
      for (const [name, { subscribed }] of Object.entries(providerLists)) {
        const { list } = yield* walked(name, 1)
        assert.deepStrictEqual(yield* list.types, subscribed, name)
      }
    }).pipe(Effect.scoped)
  )

  it.live("is gone on with after its token has expired", () =>
    Effect.gen(function* () {
      const { found, server, walk } = yield* walked("paypal", 9)
      yield* walk
      assert.lengthOf(found, 9)
      assert.lengthOf(
        server.requests.filter(({ path }) => path === "/v1/oauth2/token"),
        2
      )
    }).pipe(Effect.scoped)
  )

  it.live("follows links to other hosts by their query only", () =>
    Effect.gen(function* () {
      const { found, server, walk } = yield* walked("paddle", 5)
      yield* walk
      assert.lengthOf(found, 5)
      // Its links name api.paddle.com.
      assert.lengthOf(server.requests, 3)
    }).pipe(Effect.scoped)
  )

  it.live("asks for what it has not all of", () =>
    Effect.gen(function* () {
      const large = yield* walked("gitlab", 1)
      const at = large.server.url
      assert.isString(at)
      const { ref } = { ref: "500" }
      const obtained = yield* large.list.obtain({ id: "key-0", ref })
      assert.strictEqual(obtained.as, "asked")
      const svix = yield* walked("standard-webhooks", 1)
      svix.server.answer(({ method }) =>
        method === "POST"
          ? { status: 202 }
          : {
              json: {
                data: [
                  {
                    ...{ id: "msg_1", eventType: "a", timestamp: new Date(now).toISOString() },
                    payload: { expired: true }
                  }
                ],
                ...{ done: true, iterator: "x" }
              }
            }
      )
      yield* svix.walk
      const [expired] = svix.found
      if (expired === undefined) return assert.fail("nothing is listed")
      assert.isUndefined(expired.carried)
      assert.strictEqual((yield* svix.list.obtain(expired)).as, "asked")
      const [, post] = svix.server.requests
      assert.deepInclude(post, {
        method: "POST",
        path: "/api/v1/app/app_1/msg/msg_1/endpoint/ep_1/resend"
      })
    }).pipe(Effect.scoped)
  )

  it.live("says why one cannot be had", () =>
    Effect.gen(function* () {
      const github = yield* walked("github", 1)
      yield* github.walk
      github.server.answer(() => ({ status: 404, json: { message: "gone" } }))
      const [listed] = github.found
      if (listed === undefined) return assert.fail("nothing is listed")
      const gone = yield* github.list.obtain(listed)
      assert.deepInclude(gone, { as: "not-had" })
      github.server.answer(() => ({ json: `"${"x".repeat(16 * 1_024 * 1_024)}"` }))
      assert.deepStrictEqual(yield* github.list.obtain(listed), {
        as: "not-had",
        why: "GitHub answers with more than 16 MiB"
      })
      const petrel = yield* walked("petrel", 1)
      petrel.server.answer(() => ({ status: 409, json: { detail: "the endpoint is disabled" } }))
      const refused = yield* petrel.list.obtain({ id: "a", ref: "a.hook" })
      assert.deepStrictEqual(refused, {
        as: "not-had",
        why: "Petrel refuses the request (409: the endpoint is disabled)"
      })
    }).pipe(Effect.scoped)
  )
})

describe("the types that are wanted", () => {
  it("are those of a pattern, all of them, and those that are not known", () => {
    const wanted = wantedTypes(["invoice.*", "orders/create", "a+b"])
    for (const type of ["invoice.paid", "invoice.a.b", "orders/create", "a+b", undefined])
      assert.isTrue(wanted(type), type)
    for (const type of ["invoice", "xinvoice.paid", "orders/creates", "aab", ""])
      assert.isFalse(wanted(type), type)
    assert.isTrue(wantedTypes(undefined)("x"))
    assert.isTrue(wantedTypes(["*"])("x"))
    assert.isFalse(wantedTypes([])("x"))
  })
})
