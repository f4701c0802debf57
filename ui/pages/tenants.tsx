import { List, usePage } from "../list.tsx"
import { count } from "../parts.tsx"
import { address } from "../router.ts"
import { may, petrel } from "../session.ts"

/** Tenants of a page. */
const limit = 100

/** Tenants with endpoints, each with a link to a page of its own. */
const TenantRows = ({ page }: { readonly page: string }) => {
  const asked = usePage("tenants", [], (_, options) => petrel.system.tenants({ limit }, options))
  return (
    <List
      asked={asked}
      items={(page) => page.tenants}
      keyOf={({ tenant }) => tenant}
      empty="No tenant has an endpoint yet. A tenant needs no more than a name: add an endpoint for it."
      head={
        <>
          <th>Tenant</th>
          <th class="n">Endpoints</th>
        </>
      }
      row={({ endpoints, tenant }) => (
        <>
          <td>
            <a href={address(page === "" ? [] : [page], { tenant })}>{tenant}</a>
          </td>
          <td class="n">
            <a href={address(["endpoints"], { tenant })}>{count(endpoints)}</a>
          </td>
        </>
      )}
    />
  )
}

/** Says that a page is about one tenant, and lets an operator choose it. */
export const ChooseTenant = ({ page, why }: { readonly page: string; readonly why: string }) =>
  may("operator") ? (
    <>
      <p class="lead">{why} Choose one here, or above.</p>
      <TenantRows page={page} />
    </>
  ) : null
