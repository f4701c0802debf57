import { assert, describe, it } from "@effect/vitest"
import { makeNames } from "../../src/domain/names.ts"
import { SubjectRoutes } from "../../src/routing/subject-routes.ts"
import { directoryOf } from "../delivery/made-deliveries.ts"

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
})
