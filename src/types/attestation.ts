type Hex = `0x${string}`;

interface TypedField {
  readonly name: string;
  readonly type: string;
}

/** An off-chain attestation of EAS (version 2), in the JSON form of EAS's own library. */
export interface Attestation {
  readonly signer: Hex;
  readonly version: 2;
  readonly uid: Hex;
  readonly domain: {
    readonly name: 'EAS Attestation';
    readonly version: '1.4.0';
    readonly chainId: number;
    readonly verifyingContract: Hex;
  };
  readonly primaryType: 'Attest';
  readonly types: { readonly Attest: readonly TypedField[] };
  readonly message: {
    readonly version: 2;
    readonly schema: Hex;
    readonly recipient: Hex;
    /** Seconds since 1970. */
    readonly time: string;
    readonly expirationTime: string;
    readonly revocable: boolean;
    readonly refUID: Hex;
    readonly data: Hex;
    readonly salt: Hex;
  };
  readonly signature: { readonly v: number; readonly r: Hex; readonly s: Hex };
}
