import { assert, it } from "@effect/vitest"
import { beginsWithTenant } from "../../src/history/audit/lost-events.ts"

it("takes an id for its tenant's only where no other tenant's ids can begin so", () => {
  for (const id of ["acme.1", "acme/1", "acme:1", "acme.acme-eu.1"])
    assert.isTrue(beginsWithTenant(id, "acme"), id)
  // A tenant may be called acme-eu, or acme_1.
  for (const id of ["acme", "acme-eu-1", "acme_1", "acme1", "globex.1", "1", ""])
    assert.isFalse(beginsWithTenant(id, "acme"), id)
})
