// SPDX-License-Identifier: UNLICENSED
pragma solidity ^0.8.24;

/// A token that pretends to move what it is told to, but to one address.
contract RefusingToken {
    address private immutable refused;

    constructor(address refused_) {
        refused = refused_;
    }

    function transferFrom(address, address, uint256) external pure returns (bool) {
        return true;
    }

    function transfer(address to, uint256) external view returns (bool) {
        return to != refused;
    }
}
