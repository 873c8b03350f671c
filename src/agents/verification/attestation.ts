import {
  encodeAbiParameters,
  encodePacked,
  getAddress,
  keccak256,
  parseAbiParameters,
  parseSignature,
  stringToHex,
  zeroAddress,
  zeroHash,
  type Hex,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { Attestation } from '../../types/attestation.js';

/** Fields of an agent's attestation, in the notation of EAS's registry of schemas. */
export const ATTESTED = 'bytes32 agent, string image, bytes32 evidence, bool passed';

/** UID of the schema as EAS's registry computes it: without resolver, not revocable. */
const SCHEMA = keccak256(
  encodePacked(['string', 'address', 'bool'], [ATTESTED, zeroAddress, false]),
);

const FIELDS = parseAbiParameters(ATTESTED);

const TYPES = {
  Attest: [
    { name: 'version', type: 'uint16' },
    { name: 'schema', type: 'bytes32' },
    { name: 'recipient', type: 'address' },
    { name: 'time', type: 'uint64' },
    { name: 'expirationTime', type: 'uint64' },
    { name: 'revocable', type: 'bool' },
    { name: 'refUID', type: 'bytes32' },
    { name: 'data', type: 'bytes' },
    { name: 'salt', type: 'bytes32' },
  ],
} as const;

export interface Attested {
  readonly agentId: string;
  readonly image: string;
  /** SHA-256 of the checks. */
  readonly evidence: Hex;
  readonly passed: boolean;
  /** The agent's wallet; undefined without one. */
  readonly recipient: Hex | undefined;
  readonly measuredAt: Date;
  /** Makes the UID unique; equal for every attempt to sign the same measurement. */
  readonly salt: Hex;
}

export interface AttestationDomain {
  readonly chainId: number;
  readonly verifyingContract: Hex;
}

/** Signs an off-chain attestation of EAS, version 2: the same input gives the same signature and UID. */
export async function attest(
  { agentId, evidence, image, measuredAt, passed, recipient: wallet, salt }: Attested,
  { chainId, verifyingContract }: AttestationDomain,
  privateKey: Hex,
): Promise<Attestation> {
  const account = privateKeyToAccount(privateKey);
  const domain = {
    name: 'EAS Attestation',
    version: '1.4.0',
    chainId,
    verifyingContract: getAddress(verifyingContract),
  } as const;
  const agent = keccak256(stringToHex(agentId));
  const data = encodeAbiParameters(FIELDS, [agent, image, evidence, passed]);
  const time = BigInt(Math.floor(measuredAt.getTime() / 1_000));
  const recipient = getAddress(wallet ?? zeroAddress);
  const signed = {
    version: 2,
    schema: SCHEMA,
    recipient,
    time,
    expirationTime: 0n,
    revocable: false,
    refUID: zeroHash,
    data,
    salt,
  } as const;
  const { r, s, yParity } = parseSignature(
    await account.signTypedData({ domain, types: TYPES, primaryType: 'Attest', message: signed }),
  );
  return {
    signer: account.address,
    version: 2,
    uid: uidOf(signed),
    domain,
    primaryType: 'Attest',
    types: TYPES,
    message: { ...signed, time: String(time), expirationTime: '0' },
    signature: { v: 27 + yParity, r, s },
  };
}

/** Returns the UID as EAS defines it for version 2: with the schema as text, no attester, and index 0. */
function uidOf(message: {
  readonly schema: Hex;
  readonly recipient: Hex;
  readonly time: bigint;
  readonly expirationTime: bigint;
  readonly revocable: boolean;
  readonly refUID: Hex;
  readonly data: Hex;
  readonly salt: Hex;
}): Hex {
  const { data, expirationTime, recipient, refUID, revocable, salt, schema, time } = message;
  return keccak256(
    encodePacked(
      [
        ...(['uint16', 'bytes', 'address', 'address', 'uint64', 'uint64'] as const),
        ...(['bool', 'bytes32', 'bytes', 'bytes32', 'uint32'] as const),
      ],
      [
        ...([2, stringToHex(schema), recipient, zeroAddress, time, expirationTime] as const),
        ...([revocable, refUID, data, salt, 0] as const),
      ],
    ),
  );
}
