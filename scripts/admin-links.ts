// Prints a link for each address in ADMIN_EMAILS whose owner is not an admin yet.
import {
  ADMIN_LINK_MINUTES,
  ADMIN_LINK_PATH,
  makeAdminLinks,
} from '../src/accounts/accounts/admin-links.js';
import { accountSettings } from '../src/accounts/accounts/settings.js';
import { Database } from '../src/platform/database/database.js';
import { databaseSettings } from '../src/platform/database/settings.js';
import { readAreas } from '../src/platform/environment/read.js';
import { httpSettings } from '../src/platform/http/settings.js';
import { runScript } from '../src/run-script.js';

await runScript(main);

async function main(): Promise<void> {
  const areas = { accounts: accountSettings, database: databaseSettings, http: httpSettings };
  const { accounts, database: stored, http } = readAreas(areas, process.env);
  const database = new Database(stored.url, { maxConnections: 1 });
  try {
    for (const { email, token } of await makeAdminLinks(database, accounts.adminEmails)) {
      console.log(
        `To be an admin as ${email}: register, sign in, and open this link with that session, once ` +
          `and within ${ADMIN_LINK_MINUTES} minutes:\n` +
          `  ${http.webUrl}${ADMIN_LINK_PATH}?token=${token}`,
      );
    }
  } finally {
    await database.close();
  }
}
