import { assert, describe, vi } from "@effect/vitest"
import { Effect } from "effect"
import { browser, hasBrowser } from "../kit/browser.ts"
import { endpoint, history, publish, worker } from "../kit/engine.ts"
import { logIn, openPage, pagesConsole, portalPath } from "../kit/pages.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

vi.setConfig({ testTimeout: 300_000 })

const { scenario } = onServer()

/** Each page's address, below `/ui/`. */
const pages = [
  ...["", "deliveries", "endpoints", "endpoints/acme/billing", "endpoints/acme/billing/settings"],
  ...["deliveries/acme/acme.one.billing", "events/acme/acme.one", "dead-letters", "live", "alerts"],
  ...["tokens", "audit", "system", "endpoints/new", "endpoints/acme/other"],
  ...["endpoints/acme/other/settings", "deliveries/acme/acme.one.other", "endpoints/globex/theirs"],
  ...["deliveries?tenant=globex", "endpoints?tenant=globex", "dead-letters?tenant=globex"],
  ...["deliveries?endpoint=other", "dead-letters?endpoint=other", "no-such-page"],
  ...["events", "attempts", "attempts?tenant=globex", "attempts?endpoint=other", "jobs"],
  ...["jobs?tenant=globex&kind=replay", "jobs/globex/recovery/job-mwtsj1s1-1a33eccd", "policies"],
  ...["sources", "sources/globex/stripe", "quarantine", "quarantine?tenant=globex", "outboxes"],
  ...["quarantine/globex/1", "settings", "settings?tenant=globex", "start/recovery?endpoint=other"],
  ...["endpoints/acme/other/history", "endpoints/globex/theirs/history", "events/globex/globex.one"]
]

describe.skipIf(!hasBrowser)("a portal, in a browser", () => {
  scenario("shows on no page what is somebody else's", (place) =>
    Effect.gen(function* () {
      const hook = yield* receiver({})
      yield* endpoint({ id: "billing", url: hook.url, types: ["paid"] })
      yield* endpoint({ id: "other", url: `${hook.url}/of-the-other`, types: ["paid"] })
      yield* endpoint({
        ...{ tenant: "globex", id: "theirs", url: `${hook.url}/of-globex`, types: ["paid"] }
      })
      const facts = yield* history
      yield* worker()
      yield* publish("paid", "{}", { "Nats-Msg-Id": "acme.one" })
      yield* facts.count("delivered", 2)
      const console = yield* pagesConsole(place)
      const [ofOne, ofTenant] = yield* Effect.all([
        portalPath("acme", { endpoint: "billing" }),
        portalPath("acme")
      ])
      const started = yield* browser
      yield* Effect.promise(async () => {
        for (const [path, secrets] of [
          [ofOne, ["of-the-other", "of-globex", '"endpoint":"other"', '"id":"other"']],
          [ofTenant, ["of-globex", '"tenant":"globex"']]
        ] as const) {
          const watched = await openPage(started, console.url)
          const { page, wrong } = watched
          await logIn(watched, console.url, path)
          const bodies: Array<Promise<string>> = []
          page.on("response", (response) => {
            if (response.url().includes("/v1/") && !response.url().includes("/live"))
              bodies.push(response.text().catch(() => ""))
          })
          for (const name of pages) {
            await page.goto(`${console.url}/ui/${name}`)
            await page.getByRole("heading", { level: 1 }).first().waitFor()
            await page.waitForSelector("[aria-busy=true]", { state: "detached" })
          }
          const answered = (await Promise.all(bodies)).join("\n")
          // What it may see is there: the test looks at answers, and not at none.
          assert.include(answered, "acme.one.billing")
          for (const secret of secrets) assert.notInclude(answered, secret)
          assert.deepStrictEqual(wrong, [])
          // Whoever begins a recovery, and does not go on with it, is on a page that is theirs.
          await page.goto(`${console.url}/ui/start/recovery?endpoint=billing`)
          await page.getByRole("link", { name: "Cancel" }).click()
          await page.getByRole("heading", { name: /^(acme\/billing|Jobs)$/ }).waitFor()
          // Its links lead only to pages that it may use.
          await page.goto(`${console.url}/ui/`)
          const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link")
          const names = await links.allInnerTexts()
          for (const one of ["Audit", "System", "Tokens"]) assert.notInclude(names, one)
          for (const one of names) {
            await page
              .getByRole("navigation", { name: "Pages" })
              .getByRole("link", { name: one, exact: true })
              .click()
            await page.getByRole("heading", { level: 1 }).first().waitFor()
            await page.waitForSelector("[aria-busy=true]", { state: "detached" })
            assert.deepStrictEqual(
              await page.getByRole("alert").allInnerTexts(),
              [],
              `${one} of ${path}`
            )
          }
        }
      })
    })
  )
})
