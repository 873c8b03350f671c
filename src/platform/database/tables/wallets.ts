import { Op } from 'sequelize';
import { ownedThrough } from '../schema/policies.js';
import { boolean, created, key, nullable, table, text, withDefault } from '../schema/table.js';

/**
 * `user`: made here, one for each user; `agent`: an agent's, made here or brought by it; `imported`:
 * beside that one, by a key that was brought or made here; `provider`: kept by the wallet provider.
 */
export type WalletKind = 'user' | 'agent' | 'imported' | 'provider';

/** Wallets of users and of their agents. An address is the same on every chain that is like Ethereum. */
export const Wallet = table(
  'wallets',
  {
    id: key(text()),
    /** Means nothing any more once the account is deleted. */
    userId: text(),
    /** Of kind `agent`; null once nothing is known of the agent any more. */
    agentId: nullable(text()),
    kind: text<WalletKind>(),
    /** In lower case. */
    address: text(),
    /** Opened by `openKey` alone; null for a wallet whose key we do not have. */
    sealedKey: nullable(text()),
    /** Whether somebody else may have its key: who brought it. */
    brought: withDefault(boolean(), false),
    createdAt: created(),
  },
  [
    {
      name: 'wallets_user_key',
      unique: true,
      fields: ['user_id'],
      where: { kind: 'user' },
    },
    {
      name: 'wallets_provider_key',
      unique: true,
      fields: ['user_id'],
      where: { kind: 'provider' },
    },
    {
      name: 'wallets_imported_key',
      unique: true,
      fields: ['user_id', 'address'],
      where: { kind: 'imported' },
    },
    {
      name: 'wallets_agent_key',
      unique: true,
      fields: ['agent_id'],
      where: { agent_id: { [Op.ne]: null } },
    },
    { name: 'wallets_user_created', fields: ['user_id', 'created_at', 'id'] },
    { name: 'wallets_address', fields: ['address'] },
  ],
  ownedThrough('user_id'),
);
