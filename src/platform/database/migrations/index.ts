import { migration as accounts } from './001-accounts.js';
import { migration as agents } from './002-agents.js';
import { migration as hosts } from './003-hosts.js';
import { migration as heartbeats } from './004-heartbeats.js';
import { migration as notifications } from './005-notifications.js';
import { migration as usage } from './006-usage.js';
import { migration as records } from './007-records.js';
import { migration as inbox } from './008-inbox.js';
import { migration as volumes } from './009-volumes.js';
import { migration as hostMarks } from './010-hosts.js';
import { migration as supervision } from './011-supervision.js';
import { migration as retention } from './012-retention.js';
import { migration as hostDisks } from './013-host-disks.js';
import { migration as secrets } from './014-secrets.js';
import { migration as adminLinks } from './015-admin-links.js';
import { migration as signInLimits } from './017-sign-in-limits.js';
import { migration as fairNotices } from './019-fair-notices.js';
import { migration as memorySizes } from './020-memory-sizes.js';
import { migration as hostEgress } from './023-host-egress.js';
import { migration as sessions } from './024-sessions.js';
import { migration as identities } from './025-identities.js';
import { migration as mail } from './026-mail.js';
import { migration as removals } from './021-removals.js';
import { migration as walletNonces } from './027-wallet-nonces.js';
import { migration as farcasterTokens } from './028-farcaster-tokens.js';
import { migration as securityEvents } from './029-security-events.js';
import { migration as apiKeys } from './030-api-keys.js';
import { migration as accountDeletion } from './031-account-deletion.js';
import { migration as ledger } from './032-ledger.js';
import { migration as payments } from './033-payments.js';
import { migration as wallets } from './034-wallets.js';
import { migration as clones } from './035-clones.js';
import { migration as paymentSessions } from './036-payment-sessions.js';
import { migration as splits } from './037-splits.js';
import { migration as oneHandOver } from './038-one-hand-over.js';
import { migration as gateway } from './039-gateway.js';
import { migration as paymentSettlements } from './040-payment-settlements.js';
import { migration as fees } from './043-fees.js';
import { migration as rowNews } from './045-row-news.js';
import { migration as debits } from './048-debits.js';
import { migration as userNamespaces } from './049-user-namespaces.js';
import { migration as vouchersShown } from './051-vouchers-shown.js';
import { migration as debitsByIndex } from './052-debits-by-index.js';
import { migration as writtenMemories } from './053-written-memories.js';
import { migration as debitsPlannedOnce } from './056-debits-planned-once.js';
import { migration as revertedOpenings } from './059-reverted-openings.js';
import { migration as admittedOperations } from './062-admitted-operations.js';
import { migration as broughtWallets } from './063-brought-wallets.js';
import { migration as payingSessions } from './064-paying-sessions.js';
import type { Migration } from './migration.js';

/** Every migration in order. A list, not a folder read at run time: it survives bundling. */
export const MIGRATIONS: readonly { readonly name: string; readonly migration: Migration }[] = [
  { name: '001-accounts', migration: accounts },
  { name: '002-agents', migration: agents },
  { name: '003-hosts', migration: hosts },
  { name: '004-heartbeats', migration: heartbeats },
  { name: '005-notifications', migration: notifications },
  { name: '006-usage', migration: usage },
  { name: '007-records', migration: records },
  { name: '008-inbox', migration: inbox },
  { name: '009-volumes', migration: volumes },
  { name: '010-hosts', migration: hostMarks },
  { name: '011-supervision', migration: supervision },
  { name: '012-retention', migration: retention },
  { name: '013-host-disks', migration: hostDisks },
  { name: '014-secrets', migration: secrets },
  { name: '015-admin-links', migration: adminLinks },
  { name: '017-sign-in-limits', migration: signInLimits },
  { name: '019-fair-notices', migration: fairNotices },
  { name: '020-memory-sizes', migration: memorySizes },
  { name: '021-removals', migration: removals },
  { name: '023-host-egress', migration: hostEgress },
  { name: '024-sessions', migration: sessions },
  { name: '025-identities', migration: identities },
  { name: '026-mail', migration: mail },
  { name: '027-wallet-nonces', migration: walletNonces },
  { name: '028-farcaster-tokens', migration: farcasterTokens },
  { name: '029-security-events', migration: securityEvents },
  { name: '030-api-keys', migration: apiKeys },
  { name: '031-account-deletion', migration: accountDeletion },
  { name: '032-ledger', migration: ledger },
  { name: '033-payments', migration: payments },
  { name: '034-wallets', migration: wallets },
  { name: '035-clones', migration: clones },
  { name: '036-payment-sessions', migration: paymentSessions },
  { name: '037-splits', migration: splits },
  { name: '038-one-hand-over', migration: oneHandOver },
  { name: '039-gateway', migration: gateway },
  { name: '040-payment-settlements', migration: paymentSettlements },
  { name: '043-fees', migration: fees },
  { name: '045-row-news', migration: rowNews },
  { name: '048-debits', migration: debits },
  { name: '049-user-namespaces', migration: userNamespaces },
  { name: '051-vouchers-shown', migration: vouchersShown },
  { name: '052-debits-by-index', migration: debitsByIndex },
  { name: '053-written-memories', migration: writtenMemories },
  { name: '056-debits-planned-once', migration: debitsPlannedOnce },
  { name: '059-reverted-openings', migration: revertedOpenings },
  { name: '062-admitted-operations', migration: admittedOperations },
  { name: '063-brought-wallets', migration: broughtWallets },
  { name: '064-paying-sessions', migration: payingSessions },
];
