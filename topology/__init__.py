"""Overlay networks, dissemination trees and next-hop tables."""
