import { assert, describe, it } from "@effect/vitest"
import { makeNames } from "../../src/domain/names.ts"
import type { RoutableEndpoint } from "../../src/endpoints/directory.ts"
import { SubjectRoutes } from "../../src/routing/subject-routes.ts"
import { directoryOf } from "../delivery/made-deliveries.ts"

const routable = (id: string): RoutableEndpoint => ({
  ...{ id, key: `acme.${id}`, generation: "g", revision: 1, isDisabled: false },
  ...{ window: 60_000, windows: undefined }
})

describe("where events of a subject go", () => {
  it("has the revision of the endpoints as they are now, also if it was asked for while they were read again", () => {
    let revision = 0
    const routes = new SubjectRoutes(directoryOf({ revision: () => revision }), makeNames())
    assert.strictEqual(routes.of("events.acme.paid").directory, 0)
    revision = 5
    assert.strictEqual(routes.of("events.acme.paid").directory, 5)
  })

  it("is found once while nothing changes", () => {
    let version = 1
    let looks = 0
    const match = () => {
      looks++
      return []
    }
    const routes = new SubjectRoutes(directoryOf({ match, version: () => version }), makeNames())
    const found = routes.of("events.acme.paid")
    assert.strictEqual(routes.of("events.acme.paid"), found)
    version = 2
    routes.of("events.acme.paid")
    assert.strictEqual(looks, 2)
  })

  it("is kept for few of the subjects that go to thousands of endpoints, and for many of the others", () => {
    let looks = 0
    const made = Array.from({ length: 2_000 }, (_, n) => routable(`hook-${n}`))
    const match = (tenant: string) => {
      looks++
      return tenant === "large" ? made : made.slice(0, 5)
    }
    const routes = new SubjectRoutes(directoryOf({ match }), makeNames())
    /** Asks for 200 subjects twice, and returns how often endpoints were looked for. */
    const asked = (tenant: string) => {
      looks = 0
      for (let n = 0; n < 400; n++) routes.of(`events.${tenant}.paid-${n % 200}`)
      return looks
    }
    assert.strictEqual(asked("small"), 200)
    assert.strictEqual(asked("large"), 400)
    assert.strictEqual(asked("small"), 0)
    routes.of("events.large.paid-199")
    assert.strictEqual(looks, 0)
  })
})
